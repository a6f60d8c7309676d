"""Docstrings as Markdown: sections become lists, examples become code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$")
ENTRY = re.compile(r"^ {4}(\*{0,2}[\w.]+): (.*)$")
TITLES = {"Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Raises": "Raises"}


def docstring_markdown(value: Any, described: Mapping[str, str] | None = None) -> str:
    """The docstring of an object; `described` has the type and default of each argument, to stand behind its name."""
    lines = (inspect.getdoc(value) or "").splitlines()
    return "\n".join(_converted(lines, described or {})).strip() + "\n"


def _converted(lines: list[str], described: Mapping[str, str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        section = SECTION.match(lines[at])
        if section:
            end = _end_of_section(lines, at + 1)
            yield from _section_markdown(section[1], lines[at + 1 : end], described)
            at = end
        elif lines[at].startswith(">>>"):
            end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
            yield from ["", "```pycon", *lines[at:end], "```", ""]
            at = end
        else:
            yield lines[at]
            at += 1


def _end_of_section(lines: list[str], begin: int) -> int:
    """A section ends with the first line that is not indented; empty lines may be inside."""
    return next((i for i in range(begin, len(lines)) if lines[i] and not lines[i].startswith("    ")), len(lines))


def _section_markdown(title: str, lines: list[str], described: Mapping[str, str]) -> Iterator[str]:
    yield from ["", f"**{TITLES[title]}**", ""]
    if title == "Returns":
        yield from (inspect.cleandoc("\n".join(lines)), "")
        return
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            kind = described.get(entry[1].strip("*"), "")
            yield f"- `{entry[1]}`{f' ({kind})' if kind else ''}: {entry[2]}"
        elif line.strip():
            yield f"    {line.strip()}"
    yield ""
