"""Tables of a written experiment, taken apart, so that texts that share most of them can be put together again."""

from __future__ import annotations


def split_tables(text: str, *names: str) -> tuple[str, ...]:
    """A TOML text as what is in none of these tables, and then each of the tables with those inside it.

    Args:
        text: as `to_toml` writes it.
        names: of tables at the top.

    Returns:
        Texts that are the whole when they are put together with an empty line between; one that is not there is "".

    >>> split_tables('seed = 1\\n\\n[a]\\nx = 2\\n\\n[b]\\ny = 3\\n\\n[a.c]\\nz = 4\\n', "a", "d")
    ('seed = 1\\n\\n[b]\\ny = 3\\n', '[a]\\nx = 2\\n\\n[a.c]\\nz = 4\\n', '')
    """
    blocks = [block.strip("\n") for block in text.split("\n\n")]
    found: dict[str, list[str]] = {"": [], **{name: [] for name in names}}
    for block in blocks:
        head = block.lstrip("[").partition("]")[0].partition(".")[0] if block.startswith("[") else ""
        found[head if head in names else ""].append(block)
    return tuple("\n\n".join(some) + "\n" if some else "" for some in found.values())
