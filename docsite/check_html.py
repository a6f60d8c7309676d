"""Check a built site: every link and anchor leads somewhere, and nothing is loaded from the network."""

from __future__ import annotations

import functools
import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")}
ONLY_NAMED = {"canonical", "next", "prev", "alternate"}
"""Links in a page's head that a browser does not load."""


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        named = tag == "link" and values.get("rel") in ONLY_NAMED
        for name, value in values.items():
            if (tag, name) in LOADS and not named:
                self.loads.append(value)
            elif tag == "a" and name == "href":
                self.links.append(value)


@functools.cache
def _parse(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text())
    return page


def problems_of(site: Path) -> list[str]:
    """What is wrong with the site in this folder, a sentence each."""
    found = []
    for file in sorted(site.rglob("*.html")):
        page, name = _parse(file), file.relative_to(site).as_posix()
        found += [
            f"{name} loads {address}; everything must be in the site."
            for address in page.loads
            if urlsplit(address).netloc
        ]
        local = [link for link in page.links + page.loads if not urlsplit(link).scheme and not urlsplit(link).netloc]
        found += [f"{name} links to {link}, which is not there." for link in local if not _leads(link, file, site)]
    return found


def _leads(link: str, file: Path, site: Path) -> bool:
    parts = urlsplit(link)
    path = unquote(parts.path)
    folder = site if path.startswith("/") else file.parent  # the page for what is not found links from the root
    target = Path(os.path.normpath(folder / path.lstrip("/"))) if path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists() or not target.resolve().is_relative_to(site.resolve()):
        return False
    anchor = unquote(parts.fragment)
    return not anchor or target.suffix != ".html" or anchor in _parse(target).anchors
