"""What samplers that are guided by reports remember of each client, and how unknown clients get their share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Update
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import distinct_positions

REMEMBERED_STALENESS = 5
"""So many values of staleness are remembered of a client, the last ones."""

TRIES = 3
"""A client that was given so many tickets, and has never reported, is no longer looked for."""


class ClientReport(Record):
    """What a client's last report said.

    Args:
        loss: the number that the sampler goes by.
        num_examples: the client's samples.
        duration: seconds that the work took.
        round: the round it came in, counted from 1.
        staleness: of its last reports, at most five, oldest first.
    """

    loss: float
    num_examples: int
    duration: float
    round: int
    staleness: tuple[int, ...]


class ReportHistory(Record):
    """What is known of the clients, by number.

    Args:
        reports: each one's last report; None if it has never reported. Clients beyond the end have not, either.
        tickets: how many tickets each was given.
    """

    reports: tuple[ClientReport | None, ...] = ()
    tickets: tuple[int, ...] = ()

    def report(self, client: int) -> ClientReport | None:
        """The client's last report; None if there is none."""
        return self.reports[client] if client < len(self.reports) else None

    def count(self, client: int) -> int:
        """The tickets that the client was given."""
        return self.tickets[client] if client < len(self.tickets) else 0


def add_report(
    history: ReportHistory, update: Update, view: View, number: Literal["loss", "start_loss", "start_rms"]
) -> ReportHistory:
    """The history with one more report, of whose metrics this number is remembered."""
    client, report = update.report.client, update.report
    before = history.report(client)
    staleness = (*(before.staleness if before else ()), update.staleness)[-REMEMBERED_STALENESS:]
    loss = (report.metrics or {})[number]
    reports = list(history.reports)
    reports.extend([None] * (client + 1 - len(reports)))
    reports[client] = ClientReport(loss, report.num_examples, report.duration, view.round + 1, staleness)
    return replace(history, reports=tuple(reports))


def add_tickets(history: ReportHistory, clients: Sequence[int]) -> ReportHistory:
    """The history after these clients were given a ticket each."""
    if not clients:
        return history
    tickets = list(history.tickets)
    tickets.extend([0] * (max(clients) + 1 - len(tickets)))
    for client in clients:
        tickets[client] += 1
    return replace(history, tickets=tuple(tickets))


def split_by_report(history: ReportHistory, view: View) -> tuple[list[int], list[int], list[int]]:
    """The idle clients in order of number: those that have reported, those still to be tried, and those given up."""
    known, unknown, given_up = list[int](), list[int](), list[int]()
    for client in sorted(view.idle[place] for place in range(len(view.idle))):
        if history.report(client) is not None:
            known.append(client)
        else:
            (unknown if history.count(client) < TRIES else given_up).append(client)
    return known, unknown, given_up


def draw_count(rng: Stream, k: int, share: float) -> int:
    """A share of k, rounded up or down at random so that its mean is exact; so it has a meaning for a single ticket."""
    whole = int(share * k)
    return min(k, whole + (rng.unit() < share * k - whole))


def explore_and_exploit(
    rng: Stream, k: int, explored: int, best: Sequence[int], unknown: Sequence[int], given_up: Sequence[int]
) -> list[int]:
    """Up to k clients: `explored` unknown ones drawn uniformly, then the best; whoever is missing is filled in.

    Args:
        rng: of the draw.
        k: how many are wanted.
        explored: how many of them are to be unknown ones.
        best: clients that have reported, in the order in which they are taken.
        unknown: clients that have not.
        given_up: clients that have not, and are only taken where nobody else is left.
    """
    explored = min(len(unknown), max(explored, k - len(best)))
    chosen = [*best[: k - explored], *_take(rng, unknown, explored)]
    return [*chosen, *_take(rng, given_up, k - len(chosen))]


def _take(rng: Stream, clients: Sequence[int], count: int) -> Iterable[int]:
    return [clients[place] for place in distinct_positions(rng, len(clients), count)] if count > 0 else []


def draw_by_weight(rng: Stream, clients: Sequence[int], weights: Sequence[float], k: int) -> list[int]:
    """Up to k different clients, one after another, each in proportion to its weight among those that are left."""
    left, chosen = list(zip(clients, weights, strict=True)), list[int]()
    while left and len(chosen) < k:
        total = sum(weight for _, weight in left)
        if not total > 0.0:
            return [*chosen, *_take(rng, [client for client, _ in left], k - len(chosen))]
        mark, place = rng.unit() * total, 0
        while place < len(left) - 1 and mark >= left[place][1]:
            mark -= left[place][1]
            place += 1
        chosen.append(left.pop(place)[0])
    return chosen


def check_share(field: str, value: float) -> None:
    """Refuse a setting of a sampler that is no share."""
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"sampler.{field} is {value}; it must be at least 0 and at most 1.")
