"""Minimum participation: any selection, in which nobody who is idle waits for longer than a bound.

Paper: none; the guarantee that selection by utility lacks, as a part of its own. Its use with a buffer is ours.

Rule: w_i is how many tickets others were given since client i had its last one, or was first seen, and n how many
clients are here. Whenever k tickets are given out:

    idle clients with w_i >= gap n, the longest waiting first;  the rest as the wrapped sampler draws among the others

So a client that is idle whenever it is overdue gets its next ticket after at most

    gap n + (n - 1) + (k - 1)   tickets of others:    a share of at least 1 / (gap n + n + k - 1) of all tickets,

since whoever is served before it, once it is overdue, has waited longer, and is at the end afterwards. With gap = 0 all
take turns; without a bound it is the wrapped sampler.

State: one number a client, and the wrapped sampler's memory. Bytes beyond the model: none.

When to use it: selection by speed or utility (uniform among the idle is selection by speed) leaves clients out whose
data nobody else has. The guarantee is about tickets: a client that is slow, or loses them, has fewer updates merged.

What goes wrong elsewhere: a quota checked at the end of a round, which a client that was busy then misses for good.

Confirmed: the bound is a Hypothesis test against samplers that never draw some clients by themselves
(tests/strategies/test_minimum_participation.py).
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.record import Config, Record, replace, with_field_type
from asyncfed.core.types import Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedbuff import FedBuff
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import ObservingSampler, Sampler, UniformIdle, WorkCheckingSampler


class WaitingMemory(Record):
    """The wrapped sampler's memory, and who has waited for how long.

    Args:
        inner: the wrapped sampler's memory.
        given: tickets given out so far.
        since: by client, the value of `given` when it had its last ticket, or was first seen; -1 if it never was.
    """

    inner: Any
    given: int = 0
    since: tuple[int, ...] = ()


class _Others:
    """A view in which some clients are not idle."""

    def __init__(self, view: View, taken: list[int]) -> None:
        self._view = view
        self.idle = ClientPool([client for client in view.idle if client not in taken])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


@register("sampler")
class MinimumParticipation(Config, tag_field="kind", tag="minimum_participation"):
    """Any sampler, in which an idle client is drawn once others had `gap` tickets for each client here.

    Args:
        sampler: who else is drawn.
        gap: how long an idle client may wait, in tickets of others for each client that is here, 0 or more.

    >>> MinimumParticipation(gap=1.0).least_share(num_clients=10, tickets=1)
    0.05
    """

    sampler: Sampler = UniformIdle()
    gap: float = 2.0

    def __post_init__(self) -> None:
        if not (isfinite(self.gap) and self.gap >= 0):
            raise ConfigError(f"sampler.gap is {self.gap}; it must be zero or a positive number.")

    @property
    def queues(self) -> bool:
        return self.sampler.queues

    @property
    def memory_type(self) -> Any:
        return with_field_type(WaitingMemory, "inner", self.sampler.memory_type)

    def check(self, work: Work) -> None:
        """Refuse work that the wrapped sampler refuses."""
        if isinstance(self.sampler, WorkCheckingSampler):
            self.sampler.check(work)

    def least_share(self, num_clients: int, tickets: int) -> float:
        """The share of all tickets that a client gets at least, which is always idle when it is overdue.

        Args:
            num_clients: how many there are.
            tickets: how many are given out at once, at most.
        """
        return 1.0 / (self.gap * num_clients + num_clients + tickets - 1)

    def start(self) -> WaitingMemory:
        return WaitingMemory(self.sampler.start())

    def observe(self, memory: WaitingMemory, update: Update, view: View) -> WaitingMemory:
        """Show the wrapped sampler the report, if it observes."""
        if not isinstance(self.sampler, ObservingSampler):
            return memory
        return replace(memory, inner=self.sampler.observe(memory.inner, update, view))

    def draw(self, memory: WaitingMemory, view: View, k: int) -> tuple[list[int], WaitingMemory]:
        since, given = _with_newcomers(memory, view), memory.given
        limit = given - self.gap * len(view.clients)
        overdue = sorted((since[client], client) for client in view.idle if since[client] <= limit)
        chosen = [client for _, client in overdue[:k]]
        inner = memory.inner
        if len(chosen) < k:
            seen: Any = _Others(view, chosen) if chosen else view
            more, inner = self.sampler.draw(inner, seen, k - len(chosen))
            chosen += more
        for client in chosen:
            given += 1
            since[client] = given
        return chosen, WaitingMemory(inner, given, tuple(since))


def _with_newcomers(memory: WaitingMemory, view: View) -> list[int]:
    """Since when each client waits; those that are seen for the first time, since now."""
    since = list(memory.since)
    for client in view.clients:
        since.extend([-1] * (client + 1 - len(since)))
        if since[client] < 0:
            since[client] = memory.given
    return since


add_algorithm(
    Algorithm(
        name="minimum_participation",
        summary="FedBuff in which no idle client waits for longer than two tickets for each client",
        make=lambda tickets, work, rate: FedBuff(
            concurrency=tickets, buffer_size=min(10, tickets), sampler=MinimumParticipation(), work=work
        ),
        family="selection and fairness",
        year=2026,
        timing="asynchronous",
        data="similar",
        server_memory="K, and 1 number a client",
        evidence="ours",
    ),
    __name__,
)
