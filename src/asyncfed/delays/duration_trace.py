"""Trace: measured durations, read from a CSV file and drawn from."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.random import draw_key
from asyncfed.core.record import Record


class Trace(Record):
    """Seconds measured per client, and those of all clients pooled for a client that was not measured.

    Each ticket takes one of its client's rows, all equally likely, by a draw keyed with `purpose`: no counter to save,
    so a resumed run goes on with the same durations, and no regular dispatching can meet the same row every time.

    Args:
        by_client: the seconds measured of each client, at least one each, finite and 0 or more.
        pooled: the seconds of all clients, for those that are not in `by_client`.
        purpose: the key of the draws.

    >>> trace = Trace({0: (1.0, 2.0)}, (1.0, 2.0, 5.0), purpose=1)
    >>> [trace.seconds(0, ticket) for ticket in range(5)], [trace.seconds(9, ticket) for ticket in range(5)]
    ([1.0, 1.0, 2.0, 2.0, 2.0], [1.0, 2.0, 2.0, 5.0, 2.0])
    """

    by_client: Mapping[int, Sequence[float]]
    pooled: Sequence[float]
    purpose: int

    def seconds(self, client: int, ticket: int) -> float:
        """How long this ticket of this client takes."""
        rows = self.by_client.get(client, self.pooled)
        return rows[(draw_key(self.purpose, client, ticket) * len(rows)) >> 64]


def read_trace(path: str, purpose: int) -> Trace:
    """Read a CSV file whose header names `client` and `seconds`; other columns are ignored.

    Clients are whole numbers from 0, seconds are finite and >= 0.

    Args:
        path: the file.
        purpose: the key of the draws.

    Returns:
        The trace.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = list(_rows(path, ((reader.line_num, cells) for cells in reader)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"trace {path} cannot be read as a CSV text file: {error}. Check the path.") from error
    if not rows:
        raise ConfigError(f"trace {path} has no rows below its header; it needs at least 1.")
    by_client: dict[int, list[float]] = {}
    for client, seconds in rows:
        by_client.setdefault(client, []).append(seconds)
    return Trace(by_client, [seconds for _, seconds in rows], purpose)


def _rows(path: str, lines: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, float]]:
    """The (client, seconds) of each line that is not empty."""
    header = [name.strip() for name in next(lines, (1, []))[1]]
    client, seconds = _column(path, header, "client"), _column(path, header, "seconds")
    for number, cells in lines:
        if not cells:
            continue
        at = f"trace {path}, line {number}"
        if len(cells) != len(header):
            raise ConfigError(f"{at}: {len(cells)} values under {len(header)} columns. Correct the line.")
        yield _client(at, cells[client]), _duration(at, cells[seconds])


def _column(path: str, header: list[str], name: str) -> int:
    if name not in header:
        there = f"it has {', '.join(header)}. {did_you_mean(name, header)}" if any(header) else "it is empty."
        raise ConfigError(f'trace {path}, line 1: the header needs a column "{name}"; {there}')
    return header.index(name)


def _client(at: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError(f"{at}: client is {text!r}; it must be a whole number from 0.")
    return int(text)


def _duration(at: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{at}: seconds is {text!r}; it must be a number.") from None
    if not (isfinite(value) and value >= 0.0):
        raise ConfigError(f"{at}: seconds is {text!r}; it must be finite and not negative.")
    return value
