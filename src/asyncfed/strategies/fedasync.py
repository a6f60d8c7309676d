"""FedAsync: mix every update as it arrives, the less the staler it is.

Paper: Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020.

Rule:

    on arrival:  x = (1 - a) x + a w_i,     a = mixing * s(tau)
    s(tau) = 1,  (1 + tau)^-p,  or the hinge: 1 up to b, then 1 / (a_h (tau - b) + 1)

mixing 0.6, p 0.5, a_h 10, b 4. The paper's local proximal term is `work.proximal`. A round is J merged updates.

State: none. Bytes beyond the model: none.

When to use it: some clients are much staler than others and models are to be mixed. With differing data the fast
clients count more, however small the steps.

What goes wrong elsewhere: the discount multiplied into `mixing` for good, so that it compounds; staleness counted from
1, so that a fresh update is already discounted; the hinge without its + 1, or with tau + b.

Confirmed: against the paper and twelve public implementations, of which most deviate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from asyncfed.core.record import field
from asyncfed.core.types import Action, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_rule import ArrivalRule
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, check_between
from asyncfed.strategies.participation_weights import count_merge, participation_factor
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class CountingState(RoundState):
    """How often each client was merged, and all together; counted only where weights depend on it."""

    merges: list[int] = field(default_factory=list)
    total_merges: int = 0


@register("strategy")
class FedAsync(KeepBusy, RuledStrategy, tag_field="kind", tag="fedasync"):
    """FedAsync: every update is mixed into the model on arrival.

        x = (1 - a) x + a w_i,     a = mixing * s(staleness)

    with s constant, polynomial `(1 + tau)^-p`, or hinge: 1 up to `grace`, then `1 / (slope (tau - grace) + 1)`. The
    discount applies to this update only; it does not compound. The paper's local proximal term is `work.proximal`. A
    round is `concurrency` merged updates.

    Args:
        concurrency: tickets out at once, 1 or more.
        mixing: the paper's alpha, above 0 and at most 1.
        discount: s, what an update counts by its staleness.
        weighting: "equal", or "inverse_participation" (not in the paper): a is also multiplied by the factor of
            `strategies/participation_weights.py`, and is at most 1, so that fast clients count less each time.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> FedAsync(mixing=0.6).discount.weight(3) * 0.6
    0.3

    Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020.
    """

    concurrency: int = 5
    mixing: float = 0.6
    discount: Discount = Polynomial(power=0.5)
    weighting: Literal["equal", "inverse_participation"] = "equal"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = CountingState
    any_population: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("mixing", self.mixing, 0.0, 1.0)

    def on_update(self, state: CountingState, update: Update, view: View) -> tuple[CountingState, Sequence[Action]]:
        """Mix the client's model into the server's."""
        weight, total, client = self.mixing * self.discount.weight(update.staleness), 0, update.report.client
        if self.weighting == "inverse_participation":
            total = state.total_merges or sum(state.merges)
            weight = min(1.0, weight * participation_factor(state.merges, total, client, len(view.clients)))
            count_merge(state.merges, client)
            total += 1
        count = state.merged_this_round + 1
        ends_round = count >= self.concurrency
        merge = Merge((update.report.ticket,), (weight,), keep=1.0 - weight, of="model", ends_round=ends_round)
        merged = 0 if ends_round else count
        after = CountingState(state.sampling, merged_this_round=merged, merges=state.merges, total_merges=total)
        return self.refill(after, view, [merge])

    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """What `on_update` does, if it follows from the staleness alone."""
        if not self.may_decide_ahead or self.weighting != "equal":
            return None
        return ArrivalRule("mix", self.concurrency, lambda staleness: self.mixing * self.discount.weight(staleness))


add_algorithm(
    Algorithm(
        name="fedasync",
        summary="FedAsync, mixing 0.6 with a polynomial discount",
        make=lambda tickets, work, rate: FedAsync(concurrency=tickets, work=work),
        family="staleness",
        year=2019,
        timing="asynchronous",
        data="similar",
        certificate="yes",
        evidence="text and code",
    ),
    __name__,
)
