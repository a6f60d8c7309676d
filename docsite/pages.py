"""Where a file of the repository is in the site, and how its links are written there.

The Markdown files are read on their own in the repository too, so they link to each other and to source files by their
places in it. A page of the site has every link rewritten; whatever is linked to becomes a page as well: a source file
as code, a folder as a list. So no link leaves the site for a repository whose address nobody knows at build time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
TOP_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
PICTURES = {".png", ".svg", ".jpg"}
LANGUAGES = {".py": "python", ".toml": "toml", ".c": "c", ".json": "json"}


def site_path(path: str) -> str:
    """Where a file or folder of the repository, named from its root, is in the site's source."""
    if path in TOP_PAGES:
        return TOP_PAGES[path]
    if path.startswith("docs/") and path.endswith((".md", *PICTURES)):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"repository/{path}/files.md"
    if path.endswith((".md", *PICTURES)):
        return f"repository/{path}"
    return f"repository/{path}.md"


def rewrite_links(text: str, path: str, found: Callable[[str], None]) -> str:
    """The Markdown of `path` with links as the site has them; `found` is called with every file linked to.

    Code is left alone, and so are addresses and links within the page.
    """

    def rewritten(match: re.Match[str]) -> str:
        file, mark, anchor = match[1].partition("#")
        if not file or re.match(r"[a-z]+:", file):
            return match[0]
        target = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if target.startswith("..") or not (ROOT / target).exists():
            raise FileNotFoundError(f"{path} links to {match[1]}, which does not exist; correct the link.")
        found(target)
        return f"]({relative_path(site_path(target), site_path(path))}{mark}{anchor})"

    parts, end = [], 0
    for block in FENCE.finditer(text):
        parts += [LINK.sub(rewritten, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(rewritten, text[end:])])


def relative_path(target: str, page: str) -> str:
    """`target` as a page of the site links to it."""
    return PurePosixPath(os.path.relpath(target, os.path.dirname(page) or ".")).as_posix()


def source_page(path: str) -> str:
    """A page that shows a source file."""
    text = (ROOT / path).read_text()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"# {path}\n\n{fence}{LANGUAGES.get(Path(path).suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def folder_page(path: str) -> str:
    """A page that lists the files of a folder, in the Markdown of that folder."""
    names = [item.name for item in sorted((ROOT / path).iterdir()) if item.is_file() and item.name[0] not in "._"]
    return f"# {path}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)


def stage(folder: Path, first: list[str]) -> list[str]:
    """Write the pages `first` into `folder`, and whatever they link to; returns all files of the repository used."""
    waiting, done = list(first), []
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.append(path)
        to = folder / site_path(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        if Path(path).suffix in PICTURES:
            to.write_bytes((ROOT / path).read_bytes())
        elif (ROOT / path).is_dir():
            to.write_text(rewrite_links(folder_page(path), f"{path}/files.md", waiting.append))
        elif path.endswith(".md"):
            to.write_text(rewrite_links((ROOT / path).read_text(), path, waiting.append))
        else:
            to.write_text(source_page(path))
    return done


def documents() -> list[str]:
    """Every page that is written by hand, named from the root of the repository."""
    found = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    return sorted([*TOP_PAGES, *(page.relative_to(ROOT).as_posix() for page in found)])


def github_anchor(heading: str, separator: str = "-") -> str:
    """What a heading is called in a link, as GitHub has it, so that one link serves both places."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)
