"""Kardam: asynchronous SGD that drops changes which vary too fast with the model, and clients that report too often.

Paper: Damaskinos, El Mhamdi, Guerraoui, Patra & Taziki, "Asynchronous Byzantine Machine Learning (the case of SGD)",
ICML 2018.

Rule:

    on arrival:  x = x + server_lr exp(-a tau) D_i   if D_i passes both filters, else it is dropped
    Lipschitz:   k_i = |D_i - D_i'| / |s_i - s_i'| <= the (n - f)/n quantile of all clients' latest k
    frequency:   among the last 2f accepted and this one, the f busiest clients together appear at most f times

D_i = w_i - w_base, D_i' is the same client's report before, s_i and s_i' the models both began at. A client's first
change is accepted by the Lipschitz filter. With f = 0 all is accepted, and only stale changes are damped; with f = 1
nobody is accepted twice in three. a = 0.2. By name f is (J - 1) // 3, the most with which n >= 3f + 1, and server_lr
1/J.

As the authors' Java has it (`kardam_code`): the change is compared with the last *accepted* one, of anybody, over the
distance between the present model and the one before it; the limit is the 2/3 quantile of each client's largest of 25,
whatever f is; there is no frequency filter; after as many rejections in a row as there are clients the next is
accepted (`escape`), without which it may accept nothing any more, and with which a liar comes through now and then.

State: two models per client, and the last change. Bytes beyond the model: none.

When to use it: fewer than a third of the clients lie, and the server has no data of its own. Lies that do not vary,
such as a constant vector or a change scaled down, are not seen by the Lipschitz filter; the frequency filter bounds how
many are merged. It also slows everybody down: any 2f + 1 accepted in a row are of different clients.

What goes wrong elsewhere: a frequency filter that counts the candidate's own updates only, so that two liars have twice
the share; a fresh change damped by exp(-a) already; Java's window that drops a client's smallest coefficient, not its
oldest, because it was sorted.

Confirmed: the code reading against the authors' Java. The paper was not at hand: the quantile and the own coefficient
rest on memory and one public Python version, the frequency filter on the algorithm sheet of this project.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, isfinite
from typing import Any, ClassVar, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Action, Drop, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.lipschitz_coefficients import LipschitzCoefficients
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import DispatchPolicy, KeepBusy, RoundState, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class KardamState(RoundState):
    """Who was accepted last.

    Args:
        sampling: the sampler's memory.
        merged_this_round: how many updates were merged in the present round.
        accepted: the clients of the last 2f accepted updates, oldest first.
        rejected: how many were rejected since the last one that was accepted.
    """

    accepted: tuple[int, ...] = ()
    rejected: int = 0


@register("strategy")
class Kardam(KeepBusy, Config, tag_field="kind", tag="kardam"):
    """Kardam: x = x + server_lr exp(-damping tau) D_i if D_i passes the Lipschitz and the frequency filter.

    The numbers `coefficient` and `coefficient_limit` of each arrival are measured by the rule
    `lipschitz_coefficients` and are in the journal. A round is `concurrency` merged updates. See the head of the
    module for both readings.

    Args:
        concurrency: tickets out at once, 1 or more.
        liars: f, how many clients may lie; n >= 3f + 1 clients are needed. 0 accepts all.
        reading: "paper" or "code"; under "code" there is no frequency filter, and `liars` only switches the other off
            if it is 0.
        escape: whether, after as many rejections in a row as there are clients, the next update passes the Lipschitz
            filter.
        damping: a, what a version of staleness costs, 0 or more.
        server_lr: what a fresh change counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> Kardam(damping=-1.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.damping is -1.0; it must be zero or a positive number.

    Damaskinos et al., "Asynchronous Byzantine Machine Learning (the case of SGD)", ICML 2018.
    """

    concurrency: int = 5
    liars: int = 1
    reading: Literal["paper", "code"] = "paper"
    escape: bool = False
    damping: float = 0.2
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = KardamState

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if not (isfinite(self.damping) and self.damping >= 0):
            raise ConfigError(f"strategy.damping is {self.damping}; it must be zero or a positive number.")
        if self.liars < 0:
            raise ConfigError(f"strategy.liars is {self.liars}; it must be 0 or more.")

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches: whose updates are dropped depends on the vectors."""
        return DispatchPolicy("keep_busy", self.concurrency, predictable=False)

    @property
    def rule(self) -> LipschitzCoefficients:
        """What measures arrivals."""
        return LipschitzCoefficients(liars=self.liars, reading=self.reading)

    def check(self, num_clients: int) -> None:
        """Refuse too many liars."""
        super().check(num_clients)
        if 3 * self.liars + 1 > num_clients:
            raise ConfigError(
                f"strategy.liars is {self.liars}, which needs at least {3 * self.liars + 1} clients; there are "
                f"{num_clients}. Set it to at most {(num_clients - 1) // 3}."
            )

    def on_update(self, state: KardamState, update: Update, view: View) -> tuple[KardamState, Sequence[Action]]:
        """Merge the damped change, or drop it."""
        ticket, client = update.report.ticket, update.report.client
        reason = self._refusal(state, client, update.report.metrics or {}, len(view.clients))
        if reason is not None:
            after = replace(state, rejected=state.rejected + 1)
            return self.refill(after, view, [Drop(ticket, reason)])
        count = state.merged_this_round + 1
        ends_round = count >= self.concurrency
        weight = self.server_lr * exp(-self.damping * update.staleness)
        merge = Merge((ticket,), (weight,), keep=1.0, of="delta", ends_round=ends_round)
        last = (*state.accepted, client)[-2 * self.liars :] if self.liars else ()
        after = KardamState(state.sampling, 0 if ends_round else count, last, 0)
        return self.refill(after, view, [merge])

    def _refusal(self, state: KardamState, client: int, metrics: Any, num_clients: int) -> str | None:
        """Why the update is dropped; None if it is accepted."""
        if self.liars == 0:
            return None
        limit = metrics.get("coefficient_limit")
        if limit is not None and not metrics["coefficient"] <= limit and not self._escapes(state, num_clients):
            return f"coefficient {metrics['coefficient']:.4g} is above the limit {limit:.4g}"
        if self.reading == "paper":
            busiest = Counter((*state.accepted, client)).most_common(self.liars)
            together = sum(count for _, count in busiest)
            if together > self.liars:
                return f"the {self.liars} busiest clients had {together} of the last {len(state.accepted) + 1} updates"
        return None

    def _escapes(self, state: KardamState, num_clients: int) -> bool:
        return self.escape and state.rejected >= num_clients


for _name, _reading, _words in (
    ("kardam", "paper", "Kardam: changes that vary too fast with the model are dropped, and who reports too often"),
    (
        "kardam_code",
        "code",
        "Kardam as in the authors' code: compared with the last accepted change, of anybody",
    ),
):
    add_algorithm(
        Algorithm(
            name=_name,
            summary=_words,
            make=lambda tickets, work, rate, reading=_reading: Kardam(  # type: ignore[misc]
                concurrency=tickets,
                liars=(tickets - 1) // 3,
                reading=reading,
                escape=reading == "code",
                server_lr=1.0 / tickets,
                work=work,
            ),
            family="robust",
            year=2018,
            timing="asynchronous",
            data="similar",
            server_memory="2n",
            robust=True,
            evidence="code" if _reading == "code" else "adaptation",
            metrics=("coefficient", "coefficient_limit"),
        ),
        __name__,
    )
