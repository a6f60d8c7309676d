"""Zeno++: asynchronous SGD that adds only changes that trusted rows find useful, each scaled to their length.

Paper: Xie, Koyejo & Gupta, "Zeno++: Robust Fully Asynchronous SGD", ICML 2020.

Rule:

    on arrival:  g~ = (|v| / |g_i|) g_i;     x = x + server_lr g~   if gamma <v, g~> - rho |g~|^2 + gamma eps >= 0,
    else it is dropped;     g_i = w_i - w_base

v is the change that trusted rows bring with the same work from a model at most `refresh` - 1 versions old; the server
holds those rows and trains on them itself. They are the server's own (the experiment's `trusted`, with
trusted_client = "server"), or those of a client. The paper's are gradients, of which changes are the opposite: both v
and g_i turn round, and the inequality stays. After scaling, nothing depends on |g_i|. A change of 0 is dropped.
gamma 1, rho 0.001, eps 0, refresh 10. By name, client 0 is trusted and is trained as well, and server_lr is 1/J.

State: v. Bytes beyond the model: none. A trusted client's rows are at hand in simulations and in live runs on one
machine; rows of the server's own may be in a file, also on Flower. The time of its training is not counted.

When to use it: some clients may send harmful updates and a few clean rows exist that resemble the clients'. Any number
of liars is tolerated, each update being judged alone: whoever points away from v is dropped, and nobody moves the model
by more than trusted rows do. Liars that keep a small positive angle slow it down. Where data differ much between
clients, honest updates are dropped too: a larger eps, in units of |v|^2, lets more of them through.

What goes wrong elsewhere: the inverse ratio |g_i| / |v|, and against the model's norm instead of |v|; norms that are
added up from step to step.

Confirmed: the rule and the mistakes against public code; gamma, rho and eps of the paper from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Action, Drop, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.trusted_change import TrustedClient
from asyncfed.rules.trusted_direction import TrustedDirection
from asyncfed.strategies.aflguard import check_trusted_client, view_of_others
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


@register("strategy")
class Zeno(KeepBusy, Config, tag_field="kind", tag="zeno"):
    """Zeno++: an update is scaled to the length of the trusted change, and merged if that change approves of it.

        g~ = (|v| / |g_i|) g_i,   x = x + server_lr g~     if gamma <v, g~> - rho |g~|^2 + gamma eps >= 0

    v is the change that the trusted rows bring from a recent model with the same work; the server trains it itself
    (`asyncfed.rules.TrustedDirection`) and keeps it for `refresh` versions. With c the cosine of the angle between v
    and g_i, an update is merged iff |v|^2 (gamma c - rho) + gamma eps >= 0: g_i = v iff (gamma - rho) |v|^2 + gamma eps
    >= 0, and g_i = -v is dropped iff eps < (1 + rho / gamma) |v|^2. A change of zero is dropped. The cosine and both
    lengths of every arrival are in the journal.

    Any number of liars is tolerated, as long as the trusted rows resemble those of the honest clients.

    Args:
        concurrency: tickets out at once, 1 or more.
        trusted_client: whose rows the server holds and trusts, by number; "server" for rows of its own, which the
            experiment's `trusted` names.
        gamma: what the gain along v counts in the score, above 0.
        rho: what the length of the step costs in the score, 0 or more.
        eps: how much loss is tolerated, 0 or more; in units of |v|^2.
        refresh: after how many versions v is computed anew, 1 or more.
        train_trusted: whether the trusted client gets tickets as others do. If not, it gets one only while nobody else
            is here.
        server_lr: what a scaled change counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> Zeno(rho=0.5).score(cosine=1.0, trusted_norm=2.0)
    2.0

    Xie, Koyejo & Gupta, "Zeno++: Robust Fully Asynchronous SGD", ICML 2020.
    """

    concurrency: int = 5
    trusted_client: TrustedClient = 0
    gamma: float = 1.0
    rho: float = 0.001
    eps: float = 0.0
    refresh: int = 10
    train_trusted: bool = False
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        check_positive("gamma", self.gamma)
        check_positive("server_lr", self.server_lr)
        for name in ("rho", "eps"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ConfigError(f"strategy.{name} is {value}; it must be zero or a positive number.")
        if self.rho >= self.gamma and self.eps == 0:
            raise ConfigError(
                f"strategy.rho is {self.rho} and gamma {self.gamma}: no update but zero can have a score of 0 or more. "
                "Set rho below gamma, or eps above 0."
            )

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches: whose updates are dropped depends on the vectors."""
        return DispatchPolicy("keep_busy", self.concurrency, predictable=False)

    @property
    def rule(self) -> TrustedDirection:
        """What measures arrivals."""
        return TrustedDirection(trusted_client=self.trusted_client, refresh=self.refresh)

    def check(self, num_clients: int) -> None:
        """Refuse a trusted client that does not exist, and more tickets than others can have."""
        check_trusted_client(self.rule.trusted_client, num_clients)
        others = num_clients if self.train_trusted or self.trusted_client == "server" else num_clients - 1
        check_tickets("concurrency", self.concurrency, self.sampler, self.work, others)
        check_rule_fits(self, self.work, num_clients)

    def score(self, cosine: float, trusted_norm: float) -> float:
        """What an update is merged by: 0 or more."""
        return trusted_norm * trusted_norm * (self.gamma * cosine - self.rho) + self.gamma * self.eps

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Merge the scaled change, or drop it if its score is negative or it is zero."""
        metrics, ticket = update.report.metrics or {}, update.report.ticket
        cosine, trusted_norm, change_norm = (metrics[name] for name in ("cosine", "trusted_norm", "change_norm"))
        if not change_norm > 0:
            return self.refill(state, view, [Drop(ticket, "the change is zero")])
        score = self.score(cosine, trusted_norm)
        if not score >= 0:
            reason = f"score {score:.4g} is negative: cosine {cosine:.4g}, trusted_norm {trusted_norm:.4g}"
            return self.refill(state, view, [Drop(ticket, reason)])
        weight = self.server_lr * (trusted_norm / change_norm)
        merge, after = merge_on_arrival(state, ticket, weight, self.concurrency)
        return self.refill(after, view, [merge])

    def refill(self, state: Any, view: View, actions: list[Action], held: int = 0) -> tuple[Any, Sequence[Action]]:
        """As many tickets as are missing, for others than the trusted client."""
        return super().refill(state, view_of_others(self, view), actions, held)


add_algorithm(
    Algorithm(
        name="zeno",
        summary="Zeno++, which trusts client 0: changes scaled to the length of its own; opposite ones are dropped",
        make=lambda tickets, work, rate: Zeno(
            concurrency=tickets, train_trusted=True, server_lr=1.0 / tickets, work=work
        ),
        family="robust",
        year=2020,
        timing="asynchronous",
        data="similar",
        server_memory="1",
        robust=True,
        evidence="code",
        metrics=("cosine", "trusted_norm", "change_norm"),
    ),
    __name__,
)
