"""Which files a delay description reads: their content is part of a run, but not of its description."""

from __future__ import annotations

from typing import Any

PATHS = ("trace", "file", "capacity")
"""Fields of shipped descriptions that hold a path."""

PARTS = ("delays", "availability", "variation")
"""Fields that hold another description."""


def files_read(description: Any) -> list[str]:
    """The paths that delays, and the parts they are made of, name.

    >>> from asyncfed.delays import Delays, FlashAvailability, PerWork
    >>> files_read(PerWork(delays=Delays(trace="a.csv", availability=FlashAvailability(file="b.json"))))
    ['a.csv', 'b.json']
    """
    own = [value for name in PATHS if isinstance(value := getattr(description, name, None), str)]
    return own + [file for name in PARTS if (part := getattr(description, name, None)) for file in files_read(part)]
