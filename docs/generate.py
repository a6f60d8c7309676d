"""Write what docs/ says of every algorithm and of every setting: `python docs/generate.py`, with asyncfed installed.

docs/algorithms.md gets its table and its cards, between their marks; docs/settings.md is written anew. Both come from
the code, so that they cannot say anything else. A test fails where they are not up to date.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec

from asyncfed.core.record import Config
from asyncfed.presets.algorithm_cards import algorithm_table, cards_page
from asyncfed.registry import kinds
from asyncfed.rules import SecureAggregation

FOLDER = Path(__file__).parent
SORTS = {
    "strategy": "Strategies",
    "rule": "Rules",
    "aggregator": "Aggregators",
    "optimiser": "Optimisers",
    "sampler": "Samplers",
    "discount": "Discounts",
    "schedule": "Schedules",
    "uplink": "Uplinks",
    "privacy": "Modes of private runs",
    "attack": "Attacks",
    "problem": "Models",
    "data": "Data",
    "split": "Splits",
    "delays": "Delays",
    "distribution": "Distributions",
}
INTRODUCTION = """# Every setting of every part

Made from the code by `python docs/generate.py`. In TOML a part is a table with its `kind`; "required" has no default,
"none" means that the key is left out, "table" that it is a table of its own. What they do is on their
[cards](algorithms.md); what else an experiment has is in the [guide](guide.md).
"""


def settings_page() -> str:
    """The page of settings: a table for each kind."""
    parts = [INTRODUCTION]
    for sort, title in SORTS.items():
        parts.append(f"## {title}\n")
        for kind, member in sorted(kinds(sort).items()):
            if member.__module__.startswith("asyncfed."):
                parts.append(_settings_of(kind, member))
    parts += ["## Secure sums, simulated\n", _settings_of("secure_aggregation", SecureAggregation)]
    return "\n".join(parts)


def _settings_of(kind: str, member: type[Config]) -> str:
    doc = inspect.cleandoc(member.__doc__ or "")
    words = " ".join(doc.split("\n\n")[0].split()).rstrip(":,")
    lines = [f"### {kind}\n", words + ("" if words.endswith(".") else "."), ""]
    fields = msgspec.structs.fields(member)
    if not fields:
        return "\n".join([*lines, "No settings.\n"])
    meanings = argument_meanings(doc)
    lines += [f"| `{kind}` | default | meaning |", "|---|---|---|"]
    for field in fields:
        default = "required" if field.required else written(field.default)
        code = default if default in ("required", "table") else f"`{default}`"
        lines.append(f"| `{field.name}` | {code} | {meanings.get(field.name, '').replace('|', chr(92) + '|')} |")
    return "\n".join([*lines, ""])


def argument_meanings(doc: str) -> dict[str, str]:
    """What the section "Args:" of a docstring says of each argument, on one line."""
    section = re.search(r"^Args:\n((?:[ ]{4}.*\n?|\n)+)", doc, re.MULTILINE)
    meanings: dict[str, str] = {}
    name = ""
    for line in section[1].splitlines() if section else []:
        begin = re.match(r"[ ]{4}(\w+): (.*)", line)
        if begin:
            name = begin[1]
            meanings[name] = begin[2]
        elif name and line.strip():
            meanings[name] += " " + line.strip()
    return meanings


def written(value: Any) -> str:
    """A default as the documentation writes it; tables are only pointed to."""
    if isinstance(value, Config):
        tag = value.__struct_config__.tag  # type: ignore[attr-defined]
        return "table" if tag is None else str(tag)
    if value is None or value is msgspec.UNSET:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return msgspec.json.encode(value).decode()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def algorithms_page(page: str) -> str:
    """The page of algorithms with its generated parts written anew."""
    for name, content in (("table", algorithm_table()), ("cards", cards_page())):
        begin, end = f"<!-- {name}: made by generate.py -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{content}\n{end}{after}"
    return page


def main() -> None:
    """Write both pages."""
    page = FOLDER / "algorithms.md"
    page.write_text(algorithms_page(page.read_text()))
    (FOLDER / "settings.md").write_text(settings_page())


if __name__ == "__main__":
    main()
