"""Over-selection with a deadline: ask more clients than are needed, and merge the first that arrive.

Paper: Bonawitz et al., "Towards Federated Learning at Scale: System Design", MLSys 2019 (sections 2.2 and 9).

Rule: (1 + e) K clients start from x; when the first K have reported, or at the deadline if there is one,

    x = sum_i n_i w_i / sum_i n_i      over those that have reported

and the tickets that are still out are cancelled. If fewer than `fewest_reports` are there at the deadline, the round is
abandoned (what arrived is dropped, a new cohort begins), or goes on until so many have arrived. With e = 0 and no
deadline it is FedAvg, to the last bit.

State: the reports of the round. Bytes beyond the model: none; the models that cancelled clients downloaded are wasted.

When to use it: many clients of which some drop out or are slow by chance, and a server that needs only sums (secure
aggregation). e = 0.3 is the paper's. Clients that are always slow are hardly ever heard, so with differing data the
model leans to the fast ones.

What goes wrong elsewhere: late reports of a round merged into the next one as if they were fresh; a round that nobody
completes and nothing ends.

Confirmed: the text of the paper was read in part: 130 % of the target number of devices are selected, stragglers are
ignored, and a round with too few reports in time is abandoned. That a client is told to stop is ours; so is the limit
of rounds abandoned in a row, after which the run ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf
from typing import Any, ClassVar, Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType, replace
from asyncfed.core.types import Action, Cancel, Dispatch, Drop, Schedule, Stop, Update, Wake, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import (
    Cohort,
    CohortState,
    DispatchPolicy,
    RuledStrategy,
    check_positive,
    draw_tickets,
    mean_of_models,
)
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.some_clients import AllIdleView

MOST_ABANDONED = 100
"""So many rounds may be abandoned in a row; then the run ends, because no round would ever be completed."""


class OverSelectedState(CohortState):
    """The reports of the round, its number, whether its deadline has passed, and the rounds just abandoned."""

    number: int = 0
    overdue: bool = False
    abandoned: int = 0


Decision: TypeAlias = tuple[OverSelectedState, Sequence[Action]]


@register("strategy")
class OverSelection(Cohort, RuledStrategy, tag_field="kind", tag="over_selection"):
    """Over-selection: a cohort of ceil((1 + e) K) clients, of which the first K are merged and the rest cancelled.

        x = sum_i n_i w_i / sum_i n_i      over the first K, or those that are there at the deadline

    A round ends earlier if all other tickets are lost. If nothing is out and too few have reported, more clients are
    asked, from the same model. A round is one merge.

    Args:
        cohort_size: K, 1 or more.
        over_selection: e, 0 or more; there must be (1 + e) K clients. While some of them are away, fewer are asked.
        deadline: the longest time of a round, in seconds above 0; left out, there is none.
        fewest_reports: so many must have reported at the deadline, from 1 to `cohort_size`.
        when_short: what happens if they have not: "wait" goes on until so many have, "abandon" drops them and begins a
            new round.
        weighting: "samples" or "equal"; the same if all clients have as many samples, or none.
        sampler: which clients make a cohort.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> OverSelection(cohort_size=10).num_asked
    13
    >>> OverSelection(cohort_size=4, fewest_reports=5)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.fewest_reports is 5; it must be at least 1 and at most cohort_size, 4.

    Bonawitz et al., "Towards Federated Learning at Scale: System Design", MLSys 2019.
    """

    cohort_size: int = 5
    over_selection: float = 0.3
    deadline: float | UnsetType = UNSET
    fewest_reports: int = 1
    when_short: Literal["wait", "abandon"] = "wait"
    weighting: Literal["equal", "samples"] = "samples"
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = OverSelectedState

    def __post_init__(self) -> None:
        if not 0.0 <= self.over_selection < inf:
            raise ConfigError(f"strategy.over_selection is {self.over_selection}; it must be at least 0, and finite.")
        if self.deadline is not UNSET:
            check_positive("deadline", self.deadline)
        if not 1 <= self.fewest_reports <= max(1, self.cohort_size):
            raise ConfigError(
                f"strategy.fewest_reports is {self.fewest_reports}; it must be at least 1 and at most cohort_size, "
                f"{self.cohort_size}."
            )

    @property
    def num_asked(self) -> int:
        """ceil((1 + e) K), the clients asked in a round if there are so many."""
        return self._count_asked(self.cohort_size)

    @property
    def dispatch(self) -> DispatchPolicy:
        """A cohort; of its own manner where not all of it is waited for."""
        waits_for_all = self.over_selection == 0.0 and self.deadline is UNSET
        return DispatchPolicy("cohort" if waits_for_all else "other", self.num_asked, self.cohort_size)

    def check(self, num_clients: int) -> None:
        """Refuse more tickets than this sampler can place among so many clients."""
        super().check(num_clients)
        if self.num_asked > num_clients and not self.sampler.queues:
            raise ConfigError(
                f"strategy.over_selection is {self.over_selection} and cohort_size {self.cohort_size}, so that "
                f"{self.num_asked} clients are asked in a round, but there are only {num_clients}. Lower one of them."
            )

    def start(self, view: View) -> Decision:
        """The first cohort."""
        return self._begin(OverSelectedState(self.sampler.start()), view, [])

    def on_update(self, state: Any, update: Update, view: View) -> Decision:
        """Collect the report; merge when enough are there."""
        report = update.report
        tickets, examples = (*state.tickets, report.ticket), (*state.examples, report.num_examples)
        return self._settle(replace(state, tickets=tickets, examples=examples), view)

    def on_lost(self, state: Any, dispatch: Dispatch, view: View) -> Decision:
        """Merge what there is, or ask others, if it was the last ticket out."""
        return self._settle(state, view)

    def on_join(self, state: Any, client: int, view: View) -> Decision:
        """The client is asked if nobody is at work; else it may be drawn into the next cohort."""
        return self._settle(state, view)

    def on_wake(self, state: OverSelectedState, number: int, now: float, view: View) -> Decision:
        """The deadline of a round; of one that is over it means nothing."""
        if number != state.number:
            return state, ()
        if len(state.tickets) >= self.fewest_reports or self.when_short == "wait":
            return self._settle(replace(state, overdue=True), view)
        if state.abandoned + 1 >= MOST_ABANDONED:
            return state, [
                Stop(
                    f"{MOST_ABANDONED} rounds in a row had fewer than {self.fewest_reports} reports at the deadline of "
                    f"{self.deadline:g} s. Raise strategy.deadline, or lower strategy.fewest_reports"
                )
            ]
        reason = f"its round had fewer than {self.fewest_reports} reports at the deadline"
        actions: list[Action] = [Drop(ticket, reason) for ticket in state.tickets]
        return self._begin(replace(state, abandoned=state.abandoned + 1), view, actions, reason)

    def _settle(self, state: OverSelectedState, view: View) -> Decision:
        """Merge if enough have reported, ask more clients if nobody is at work and too few have, else wait."""
        reported = len(state.tickets)
        if reported >= (self.fewest_reports if state.overdue or not view.in_flight else self.cohort_size):
            by_samples = self.weighting == "samples" and any(state.examples)  # nobody has any: all count the same
            merge = mean_of_models(state.tickets, state.examples if by_samples else (1,) * reported)
            return self._begin(replace(state, abandoned=0), view, [merge], "its round is over")
        if view.in_flight:
            return state, ()
        if not reported:
            return self._begin(state, view, [])
        missing = self._count_asked(self.cohort_size - reported)
        more, sampling = draw_tickets(missing, self.sampler, state.sampling, view, *self.job())
        return replace(state, sampling=sampling), more

    def _begin(self, state: OverSelectedState, view: View, actions: list[Action], why: str = "") -> Decision:
        """A new cohort, after these actions and after cancelling what is out."""
        actions += [Cancel(ticket, why) for ticket in view.outstanding]
        seen: Any = AllIdleView(view) if view.in_flight else view
        trains, sampling = draw_tickets(self.num_asked, self.sampler, state.sampling, seen, *self.job())
        actions += trains
        if trains and self.deadline is not UNSET:
            actions.append(Wake(self.deadline, state.number + 1))
        return OverSelectedState(sampling, number=state.number + 1, abandoned=state.abandoned), actions

    def _count_asked(self, wanted: int) -> int:
        return ceil((1.0 + self.over_selection) * wanted - 1e-9)  # 1.1 * 10 is a little more than 11


def asking(tickets: int, work: Work) -> OverSelection:
    """The strategy that asks so many clients, and merges the first of them: as many as make e at least 0.3.

    Args:
        tickets: how many clients are asked in a round, 1 or more.
        work: what each of them is asked to do.

    Returns:
        The strategy; a single client is not over-selected.

    >>> asking(13, Work()).cohort_size, asking(4, Work()).cohort_size, asking(1, Work()).over_selection
    (10, 3, 0.0)
    """
    needed = max(1, floor(tickets / 1.3 + 1e-9))
    return OverSelection(cohort_size=needed, over_selection=tickets / needed - 1.0, work=work)


add_algorithm(
    Algorithm(
        name="over_selection",
        summary="FedAvg that asks 1.3 times as many clients as it needs and cancels the last ones",
        make=lambda tickets, work, rate: asking(tickets, work),
        family="semi-synchronous",
        year=2019,
        timing="semi-synchronous",
        data="similar",
        server_memory="K",
        evidence="text",
    ),
    __name__,
)
