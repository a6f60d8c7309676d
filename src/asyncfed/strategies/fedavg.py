"""FedAvg, FedProx and plain synchronous federated learning: barrier rounds.

Paper: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017;
FedProx: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.

Rule: a cohort of J clients starts from x; when all have reported or are lost,

    x = sum_i n_i w_i / sum_i n_i      weighting = "samples"
    x = (1/J) sum_i w_i                weighting = "equal": the name sync, the paper's rival

FedProx: clients minimise F_i(w) + mu/2 |w - w_base|^2, by `work.proximal`; the name fedprox has mu = 0.01.

State: none. Bytes beyond the model: none.

When to use it: as the baseline, and wherever nobody is much slower than the others: per round it is hard to beat.
FedProx when many local epochs on differing data drive clients apart.

What goes wrong elsewhere: reports summed in an order that nothing records, so that nobody can repeat the bits of the
result. Here it is the order of arrival, which the journal holds: a replay sums in the same one.

Confirmed: standard; the proximal gradient by a test that it is not zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, cast

from asyncfed.core.record import replace
from asyncfed.core.types import Action, Merge, Schedule, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_rule import ArrivalRule
from asyncfed.strategies.dispatch import Cohort, RuledStrategy, mean_of_models
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class FedAvg(Cohort, RuledStrategy, tag_field="kind", tag="fedavg"):
    """FedAvg: each round a cohort of J clients starts from the same model; when all have reported (or are lost),

        x = sum_i n_i w_i / sum_i n_i      weighting = "samples", n_i the samples of client i
        x = (1/J) sum_i w_i                weighting = "equal", the paper's synchronous FL

    With `work.proximal > 0` this is FedProx: see `fedprox`.

    Args:
        cohort_size: J, 1 or more and at most the number of clients.
        weighting: "samples" or "equal"; the same if all clients have as many samples, or none.
        sampler: which clients make a cohort.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> FedAvg(cohort_size=3).dispatch
    DispatchPolicy(manner='cohort', tickets=3, merged_at_once=3, predictable=True)

    McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017.
    """

    cohort_size: int = 5
    weighting: Literal["equal", "samples"] = "samples"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    any_population: ClassVar[bool] = True

    def merges(self, tickets: tuple[int, ...], examples: tuple[int, ...]) -> Sequence[Action]:
        """The mean of the cohort's models."""
        by_samples = self.weighting == "samples" and any(examples)  # nobody has any: all count the same
        return [mean_of_models(tickets, examples if by_samples else (1,) * len(tickets))]

    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """What the hooks do, in numbers."""
        if not self.may_decide_ahead:
            return None

        def merge(tickets: tuple[int, ...], examples: tuple[int, ...]) -> Merge:
            [merged] = self.merges(tickets, examples)
            return cast(Merge, merged)

        return ArrivalRule("cohort", self.cohort_size, lambda staleness: 1.0, merge_held=merge)


def fedprox(cohort_size: int = 5, proximal: float = 0.01, work: Work | None = None) -> FedAvg:
    """FedProx: FedAvg whose clients minimise `F_c(w) + proximal/2 * |w - x|^2`.

    Any strategy takes `work.proximal` likewise.

    Args:
        cohort_size: how many clients make a round.
        proximal: the weight of the proximal term, 0 or more.
        work: what each client is asked to do otherwise; None for `Work()`.

    Returns:
        The strategy.

    >>> fedprox(proximal=0.1).work.proximal
    0.1

    Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020.
    """
    return FedAvg(cohort_size=cohort_size, work=replace(work or Work(), proximal=proximal))


add_algorithm(
    Algorithm(
        name="sync",
        summary="synchronous FL, equal weights, constant rate (the paper's rival)",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, weighting="equal", work=work),
        family="synchronous",
        year=2017,
        timing="synchronous",
        data="any",
        certificate="yes",
        optimum=True,
    ),
    __name__,
)


add_algorithm(
    Algorithm(
        name="fedavg",
        summary="FedAvg, weights by samples",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=work),
        family="synchronous",
        year=2017,
        timing="synchronous",
        data="similar",
        certificate="yes",
    ),
    __name__,
)


add_algorithm(
    Algorithm(
        name="fedprox",
        summary="FedProx, proximal term 0.01",
        make=lambda tickets, work, rate: FedAvg(cohort_size=tickets, work=replace(work, proximal=0.01)),
        family="synchronous",
        year=2018,
        timing="synchronous",
        data="similar",
    ),
    __name__,
)
