"""Trace: measured durations, read from a CSV file and handed out again."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Record


class Trace(Record):
    """Seconds per client, in order, and those of all clients pooled for a client that was not measured.

    The ticket's number picks the row, `rows[ticket % len(rows)]`: no counter to save, so a resumed run goes on with
    the same durations. Ticket numbers are shared by all clients; a client handed every n-th ticket therefore meets
    all of its rows only if n and the number of its rows have no common divisor.

    >>> trace = Trace({0: (1.0, 2.0)}, (1.0, 2.0, 5.0))
    >>> [trace.seconds(0, ticket) for ticket in range(3)], trace.seconds(9, 2)
    ([1.0, 2.0, 1.0], 5.0)
    """

    by_client: Mapping[int, Sequence[float]]
    pooled: Sequence[float]

    def seconds(self, client: int, ticket: int) -> float:
        """How long this ticket of this client takes."""
        rows = self.by_client.get(client, self.pooled)
        return rows[ticket % len(rows)]


class Row(Record):
    """One measured duration. `order` is its `ticket_number` where the file has that column, else its line."""

    client: int
    order: int
    seconds: float


def read_trace(path: str) -> Trace:
    """Read a CSV file whose header names `client` and `seconds`, and perhaps `ticket_number`; others are ignored.

    A client's rows keep the order of the file or, with `ticket_number`, of those numbers. Clients are whole numbers
    from 0, seconds are finite and >= 0.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = list(_rows(path, ((reader.line_num, cells) for cells in reader)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"trace {path} cannot be read as a CSV text file: {error}. Check the path.") from error
    if not rows:
        raise ConfigError(f"trace {path} has no rows below its header; it needs at least 1.")
    rows.sort(key=lambda row: row.order)
    by_client: dict[int, list[float]] = {}
    for row in rows:
        by_client.setdefault(row.client, []).append(row.seconds)
    return Trace(by_client, [row.seconds for row in rows])


def _rows(path: str, lines: Iterator[tuple[int, list[str]]]) -> Iterator[Row]:
    header = [name.strip() for name in next(lines, (1, []))[1]]
    client, seconds = _column(path, header, "client"), _column(path, header, "seconds")
    order = header.index("ticket_number") if "ticket_number" in header else None
    for number, cells in lines:
        if not cells:
            continue
        if len(cells) != len(header):
            raise ConfigError(
                f"trace {path}, line {number}: {len(cells)} values under {len(header)} columns. Mend the line."
            )
        at = f"trace {path}, line {number}"
        yield Row(
            _whole(at, "client", cells[client]),
            number if order is None else _whole(at, "ticket_number", cells[order]),
            _duration(at, cells[seconds]),
        )


def _column(path: str, header: list[str], name: str) -> int:
    if name not in header:
        there = f"it has {', '.join(header)}. {did_you_mean(name, header)}" if any(header) else "it is empty."
        raise ConfigError(f'trace {path}, line 1: the header needs a column "{name}"; {there}')
    return header.index(name)


def _whole(at: str, name: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise ConfigError(f"{at}: {name} is {text!r}; it must be a whole number from 0.")
    return int(text)


def _duration(at: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{at}: seconds is {text!r}; it must be a number.") from None
    if not (isfinite(value) and value >= 0.0):
        raise ConfigError(f"{at}: seconds is {text!r}; it must be finite and not negative.")
    return value
