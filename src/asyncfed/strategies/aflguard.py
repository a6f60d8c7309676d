"""AFLGuard: asynchronous SGD that adds only changes close enough to what trusted rows would bring.

Paper: Fang, Liu, Gong & Bentley, "AFLGuard: Byzantine-robust Asynchronous Federated Learning", ACSAC 2022.

Rule:

    on arrival:  x = x + server_lr g_i   if |g_i - g_s| <= lambda |g_s|, else it is dropped;     g_i = w_i - w_base

g_s is the change that trusted rows bring from the present model with the same work; the server holds those rows and
trains on them itself, every `refresh` versions. They are the server's own (the experiment's `trusted`, with
trusted_client = "server"), or those of a client. lambda 1.5, refresh 10. By name, client 0 is trusted and is trained as
well, and server_lr is 1/J. With lambda infinite it is plain asynchronous SGD; below 1 a change of zero is dropped too.

State: g_s. Bytes beyond the model: none. A trusted client's rows are at hand in simulations and in live runs on one
machine; rows of the server's own may be in a file, also on Flower. The time of its training is not counted.

When to use it: some clients may send harmful updates and a few clean rows exist that resemble the clients'. Any number
of liars is tolerated, each update being judged alone; those that stay within the distance are not seen.

What goes wrong elsewhere: nothing known.

Confirmed: the rule against public code; lambda and the number of trusted rows from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar, Protocol

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Action, Drop, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.trusted_change import TrustedClient
from asyncfed.rules.trusted_distance import TrustedDistance
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import (
    DispatchPolicy,
    KeepBusy,
    RoundState,
    check_positive,
    check_rule_fits,
    check_tickets,
    merge_on_arrival,
)
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.wrapping import ViewWithout


@register("strategy")
class AFLGuard(KeepBusy, Config, tag_field="kind", tag="aflguard"):
    """AFLGuard: an update is merged on arrival if it is not too far from what trusted data would bring, else dropped.

        x = x + server_lr g_i     if |g_i - g_s| <= distance_factor |g_s|,   g_i = w_i - w_base

    g_s is the change that the trusted rows bring from the present model with the same work. The server trains it
    itself (`asyncfed.rules.TrustedDistance`) and keeps it for `refresh` versions. So a change may be longer or
    shorter than g_s and point elsewhere, but one that points the other way, or is very long, is not merged. With
    `distance_factor` below 1 a change of zero is rejected too; if g_s is zero, all but zero are. The distance and |g_s|
    of every arrival are in the journal.

    The rule remembers g_s; the strategy, how many updates were merged in the present round, of which `concurrency`
    make one.

    When: some clients may send harmful updates, and the server has a few clean rows. Pitfalls: the trusted rows must
    resemble the clients': where data differ much between clients, honest updates are rejected too. Attackers that stay
    within the distance are not seen. A stale update is measured against a fresh g_s.

    Args:
        concurrency: tickets out at once, 1 or more.
        trusted_client: whose rows the server holds and trusts, by number; "server" for rows of its own, which the
            experiment's `trusted` names.
        distance_factor: the paper's lambda, above 0; infinite to accept all.
        refresh: after how many versions g_s is computed anew, 1 or more.
        train_trusted: whether the trusted client gets tickets as others do. If not, it gets one only while nobody else
            is here.
        server_lr: what a change counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> AFLGuard(trusted_client=3).rule.trusted_client
    3

    Fang, Liu, Gong & Bentley, "AFLGuard: Byzantine-robust Asynchronous Federated Learning", ACSAC 2022.
    """

    concurrency: int = 5
    trusted_client: TrustedClient = 0
    distance_factor: float = 1.5
    refresh: int = 10
    train_trusted: bool = False
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        if not self.distance_factor > 0:
            raise ConfigError(f"strategy.distance_factor is {self.distance_factor}; it must be above 0.")
        check_positive("server_lr", self.server_lr)

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches: whose updates are dropped depends on the vectors."""
        return DispatchPolicy("keep_busy", self.concurrency, predictable=False)

    @property
    def rule(self) -> TrustedDistance:
        """What measures arrivals."""
        return TrustedDistance(trusted_client=self.trusted_client, refresh=self.refresh)

    def check(self, num_clients: int) -> None:
        """Refuse a trusted client that does not exist, and more tickets than others can have."""
        check_trusted_client(self.rule.trusted_client, num_clients)
        others = num_clients if self.train_trusted or self.trusted_client == "server" else num_clients - 1
        check_tickets("concurrency", self.concurrency, self.sampler, self.work, others)
        check_rule_fits(self, self.work, num_clients)

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Merge the change, or drop it if it is too far away."""
        metrics, ticket = update.report.metrics or {}, update.report.ticket
        distance, trusted_norm = metrics["distance"], metrics["trusted_norm"]
        limit = inf if self.distance_factor == inf else self.distance_factor * trusted_norm
        if not distance <= limit:
            reason = f"distance {distance:.4g} is above {self.distance_factor:g} times trusted_norm {trusted_norm:.4g}"
            return self.refill(state, view, [Drop(ticket, reason)])
        merge, after = merge_on_arrival(state, ticket, self.server_lr, self.concurrency)
        return self.refill(after, view, [merge])

    def refill(self, state: Any, view: View, actions: list[Action], held: int = 0) -> tuple[Any, Sequence[Action]]:
        """As many tickets as are missing, for others than the trusted client."""
        return super().refill(state, view_of_others(self, view), actions, held)


def check_trusted_client(client: TrustedClient, num_clients: int) -> None:
    """Refuse a trusted client that does not exist."""
    if client != "server" and client >= num_clients:
        raise ConfigError(
            f"strategy.trusted_client is {client}; with {num_clients} clients it is at most {num_clients - 1}."
        )


class _Trusting(Protocol):
    @property
    def trusted_client(self) -> TrustedClient: ...
    @property
    def train_trusted(self) -> bool: ...


def view_of_others(strategy: _Trusting, view: View) -> View:
    """The view without the trusted client, if it is not to be trained and somebody else is here."""
    client = strategy.trusted_client
    return view if strategy.train_trusted or client == "server" or len(view.clients) <= 1 else ViewWithout(view, client)


add_algorithm(
    Algorithm(
        name="aflguard",
        summary="AFLGuard, which trusts client 0: changes that differ too much from its own are dropped",
        make=lambda tickets, work, rate: AFLGuard(
            concurrency=tickets, train_trusted=True, server_lr=1.0 / tickets, work=work
        ),
        family="robust",
        year=2022,
        timing="asynchronous",
        data="similar",
        server_memory="1",
        robust=True,
        evidence="code",
        metrics=("distance", "trusted_norm"),
    ),
    __name__,
)
