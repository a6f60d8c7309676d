"""The values in a request's query, each checked: what is wrong is refused with the value and the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

LONGEST_TEXT = 200


class BadQueryError(Exception):
    """A value that no page sends; the text says which and what it may be."""


class Query:
    """What follows the question mark of an address, and the client that the address names, if it names one."""

    def __init__(self, values: Mapping[str, str], client: int = -1) -> None:
        self._values = values
        self.client = client

    def whole(self, name: str, default: int, least: int = 0, most: int = 10**9) -> int:
        """A whole number; one above `most` counts as that."""
        text = self._values.get(name) or str(default)
        if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) >= least):
            raise BadQueryError(f"{name} is {text[:40]!r}; it must be a whole number of at least {least}.")
        return min(int(text), most)

    def number(self, name: str, default: float) -> float:
        """A finite number."""
        text = self._values.get(name) or str(default)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value):
            raise BadQueryError(f"{name} is {text[:40]!r}; it must be a finite number.")
        return value

    def choice(self, name: str, known: Sequence[str]) -> str:
        """One of these words, the first if none is given."""
        text = self._values.get(name) or known[0]
        if text not in known:
            raise BadQueryError(f"{name} is {text[:40]!r}; it must be one of {', '.join(known)}.")
        return text

    def text(self, name: str, longest: int = LONGEST_TEXT) -> str:
        """Any text, cut off where it is long."""
        return self._values.get(name, "")[:longest]
