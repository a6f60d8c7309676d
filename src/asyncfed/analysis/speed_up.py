"""What not waiting for the slowest saves, for groups of clients that somebody has written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.theory.time_complexity import SpeedUp, concurrency_speed_up


def groups_of_clients(texts: Sequence[str]) -> list[tuple[int, float]]:
    """How many clients take how many seconds.

    >>> groups_of_clients(["900x10", "100x60"])
    [(900, 10.0), (100, 60.0)]
    """
    return [_group(text) for text in texts]


def speed_up_of_groups(groups: Sequence[tuple[int, float]], concurrency: int) -> SpeedUp:
    """The speed-up with so many clients at work at once; see `concurrency_speed_up`."""
    return concurrency_speed_up(np.repeat([seconds for _, seconds in groups], [n for n, _ in groups]), concurrency)


def _group(text: str) -> tuple[int, float]:
    count, _, seconds = text.partition("x")
    if count.isdecimal() and int(count) > 0:
        try:
            return int(count), float(seconds)
        except ValueError:
            pass
    raise ConfigError(f'times are "{text}"; give clients and seconds as 900x10: 900 clients that take 10 s each.')
