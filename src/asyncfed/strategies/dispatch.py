"""Dispatch policies, written once: keep J tickets out, a cohort with a barrier, one client after another.

A strategy takes one by inheriting from it and answers `on_update`; the policy does the rest of the hooks. Its fields
are then `concurrency` (or `cohort_size`), `sampler`, `work` and `schedule`, and `rule` if it is a `RuledStrategy`; its
state is a `SamplerState` with what else it remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, Record, UnsetType, replace, with_field_type
from asyncfed.core.types import Action, Dispatch, Merge, Schedule, Train, Update, Work
from asyncfed.registry import promises
from asyncfed.rules.protocol import ServerRule, check_merge, rule_of
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import ObservingSampler, Sampler, WorkCheckingSampler
from asyncfed.strategies.single_updates import SumOnly


class RuledStrategy(Config):
    """The settings of a strategy that leaves to a rule how its arrivals become the next model.

    Args:
        rule: a server rule, see `asyncfed.rules`; UNSET for the weighted sum that the strategy's merges describe.
    """

    rule: ServerRule | UnsetType = UNSET


class SamplerState(Record):
    """What a policy remembers. Strategies add what they remember to it.

    Args:
        sampling: the sampler's memory.
    """

    sampling: Any


class DispatchPolicy(Record):
    """How a strategy dispatches: `tickets` is how many are out at once, or the size of a cohort.

    `manner` is "keep_busy" (a new ticket for each one that comes back), "cohort" (all come back before the next go
    out), "sequential" (one client after another), or "other" (a way for which participation has no formula).
    `merged_at_once` is how many updates make a version. `predictable` is False where who is merged, and how stale, does
    not follow from this and the sampler alone: late work is dropped or begun anew, or who has reported goes on.
    """

    manner: Literal["keep_busy", "cohort", "sequential", "other"]
    tickets: int
    merged_at_once: int = 1
    predictable: bool = True


@runtime_checkable
class Dispatching(Protocol):
    """A strategy that says how it dispatches, with which sampler and schedule. All shipped ones do but
    FedCompass, which has every client at work."""

    @property
    def dispatch(self) -> DispatchPolicy: ...
    @property
    def sampler(self) -> Sampler: ...
    @property
    def work(self) -> Work: ...
    @property
    def schedule(self) -> Schedule | None: ...
    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round."""
        ...


def draw_tickets(
    count: int, sampler: Sampler, memory: Any, view: View, work: Work, schedule: Schedule | None
) -> tuple[list[Train], Any]:
    """Up to `count` new tickets for the clients that the sampler names, and the sampler's memory."""
    if count <= 0:
        return [], memory
    clients, memory = sampler.draw(memory, view, count)
    if len(clients) == 1:  # the rule, once everybody is at work
        return [Train(clients[0], work, schedule)], memory
    return [Train(client, work, schedule) for client in clients], memory


class _Policy(SumOnly):
    """What all policies share. `state_class` is the strategy's state, made from the sampler's memory alone."""

    __slots__ = ()
    state_class: ClassVar[type[Any]] = SamplerState
    sampler: Sampler
    work: Work

    @property
    def state_type(self) -> type[Any]:
        """The state's class, with the type of this sampler's memory filled in."""
        return with_field_type(self.state_class, "sampling", self.sampler.memory_type)

    @property
    def may_decide_ahead(self) -> bool:
        """Whether decisions are numbers alone: no rule that sees vectors, idle clients drawn uniformly, and weights and
        rates that may be asked for at any time."""
        parts = [getattr(self, name, None) for name in ("schedule", "discount", "damping")]
        known = all(part is None or promises(part, "known_ahead") for part in parts)
        return known and getattr(self, "rule", UNSET) is UNSET and promises(self.sampler, "draws_from_idle")

    @property
    def observes(self) -> bool:
        """Whether the sampler is shown every report."""
        return isinstance(self.sampler, ObservingSampler)

    def observe(self, state: Any, update: Update, view: View) -> Any:
        """Show the sampler a report."""
        return replace(state, sampling=cast(ObservingSampler, self.sampler).observe(state.sampling, update, view))

    def on_leave(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]:
        """Nothing: the client's tickets are lost next, one by one."""
        return state, ()


class KeepBusy(_Policy):
    """Keeps `concurrency` tickets out: for each that is reported or lost, a new one is dispatched at once."""

    __slots__ = ()
    schedule: Schedule

    if TYPE_CHECKING:  # a field of the strategy, or a property

        @property
        def concurrency(self) -> int: ...

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("keep_busy", self.concurrency)

    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round: as many as are out at once."""
        return self.concurrency

    def check(self, num_clients: int) -> None:
        """Refuse more tickets at once than this sampler can place among so many clients."""
        check_tickets("concurrency", self.concurrency, self.sampler, self.work, num_clients)
        check_rule_fits(self, self.work, num_clients)

    def start(self, view: View) -> tuple[Any, Sequence[Action]]:
        """The first tickets."""
        return self.refill(self.state_class(self.sampler.start()), view, [])

    def on_lost(self, state: Any, dispatch: Dispatch, view: View) -> tuple[Any, Sequence[Action]]:
        """A new ticket in place of the lost one."""
        return self.refill(state, view, [])

    def on_join(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]:
        """More tickets, if there were not clients enough."""
        return self.refill(state, view, [])

    def refill(self, state: Any, view: View, actions: list[Action], held: int = 0) -> tuple[Any, Sequence[Action]]:
        """Append the tickets that are missing; `held` reports wait to be merged and keep their places."""
        missing = self.concurrency - view.in_flight - held
        if missing > 0:
            trains, sampling = draw_tickets(missing, self.sampler, state.sampling, view, self.work, self.schedule)
            if sampling is not state.sampling:
                state = replace(state, sampling=sampling)
            actions.extend(trains)
        return state, actions


class OneByOne(KeepBusy):
    """One client after another: a single ticket is out at a time."""

    __slots__ = ()

    @property
    def concurrency(self) -> int:
        """One."""
        return 1

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("sequential", 1)


class RoundState(SamplerState):
    """How many updates were merged in the present round."""

    merged_this_round: int = 0


def merge_on_arrival(
    state: RoundState, ticket: int, weight: float, round_size: int, of: Literal["delta", "model"] = "delta"
) -> tuple[Merge, RoundState]:
    """The merge of one change, `x <- x + weight * change`, and the state after it; `round_size` of them are a round.

    Of a model it is `x <- (1 - weight) x + weight * model`.
    """
    merged = state.merged_this_round + 1
    ends_round = merged >= round_size
    keep = 1.0 if of == "delta" else 1.0 - weight
    merge = Merge((ticket,), (weight,), keep=keep, of=of, ends_round=ends_round)
    return merge, RoundState(state.sampling, 0 if ends_round else merged)


class CohortState(SamplerState):
    """The reports of the present cohort.

    Args:
        sampling: the sampler's memory.
        tickets: their tickets, in the order of arrival.
        examples: how many samples each of their clients has.
    """

    tickets: tuple[int, ...] = ()
    examples: tuple[int, ...] = ()


class Cohort(_Policy):
    """Dispatches `cohort_size` tickets, waits until all are reported or lost, merges, and draws the next cohort."""

    __slots__ = ()
    state_class: ClassVar[type[Any]] = CohortState
    cohort_size: int
    schedule: Schedule | None

    def job(self) -> tuple[Work, Schedule | None]:
        """What every member of a cohort is asked to do, and the schedule of its rate."""
        return self.work, self.schedule

    def merges(self, tickets: tuple[int, ...], examples: tuple[int, ...]) -> Sequence[Action]:
        """The merges of a complete cohort of at least one report, the last of which ends the round: one plain mean."""
        return [mean_of_models(tickets, (1,) * len(tickets))]

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches."""
        return DispatchPolicy("cohort", self.cohort_size, self.cohort_size)

    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round: a cohort, if none is lost."""
        return self.cohort_size

    def check(self, num_clients: int) -> None:
        """Refuse a cohort larger than this sampler can place among so many clients."""
        check_tickets("cohort_size", self.cohort_size, self.sampler, self.job()[0], num_clients)
        check_rule_fits(self, self.job()[0], num_clients)

    def start(self, view: View) -> tuple[Any, Sequence[Action]]:
        """The first cohort."""
        return self._next_cohort(self.sampler.start(), view, ())

    def on_update(self, state: CohortState, update: Update, view: View) -> tuple[CohortState, Sequence[Action]]:
        """Collect the report; merge when it was the last."""
        report = update.report
        collected = CohortState(
            state.sampling,
            tickets=(*state.tickets, report.ticket),
            examples=(*state.examples, report.num_examples),
        )
        return self._close_if_complete(collected, view)

    def on_lost(self, state: CohortState, dispatch: Dispatch, view: View) -> tuple[CohortState, Sequence[Action]]:
        """Merge what there is, if it was the last ticket out."""
        return self._close_if_complete(state, view)

    def on_join(self, state: CohortState, client: int, view: View) -> tuple[CohortState, Sequence[Action]]:
        """A new cohort, if nobody was there to work; else the client may be drawn into the next one."""
        return self._close_if_complete(state, view)

    def _close_if_complete(self, state: CohortState, view: View) -> tuple[CohortState, Sequence[Action]]:
        if view.in_flight:
            return state, ()
        return self._next_cohort(
            state.sampling, view, self.merges(state.tickets, state.examples) if state.tickets else ()
        )

    def _next_cohort(self, sampling: Any, view: View, merges: Sequence[Action]) -> tuple[CohortState, Sequence[Action]]:
        trains, sampling = draw_tickets(self.cohort_size, self.sampler, sampling, view, *self.job())
        return CohortState(sampling), [*merges, *trains]


def mean_of_models(tickets: tuple[int, ...], counts: tuple[int, ...]) -> Merge:
    """The end of a round: the mean of these models, each counting as often as `counts` says, in place of the model."""
    total = sum(counts)
    return Merge(tickets, tuple([n / total for n in counts]), keep=0.0, of="model", ends_round=True)


def check_rule_fits(strategy: object, work: Work, num_clients: int) -> None:
    """Refuse a rule that does not fit what clients are asked to do, or how many updates are merged at once.

    How many there are is known of strategies that say how they dispatch, unless they merge what there is when a time
    has passed; a rule of one's own need not ask.
    """
    rule = rule_of(strategy)
    if rule is None:
        return
    rule.check(work)
    policy = strategy.dispatch if isinstance(strategy, Dispatching) else None
    if policy is not None and (policy.manner != "other" or policy.merged_at_once > 1):
        check_merge(rule, policy.merged_at_once, num_clients)


def check_tickets(field: str, tickets: int, sampler: Sampler, work: Work, num_clients: int) -> None:
    """Refuse more tickets at once than there are clients, unless busy clients may queue them and it makes sense.

    Work that does not measure what the sampler needs is refused too.
    """
    if isinstance(sampler, WorkCheckingSampler):
        sampler.check(work)
    if tickets < 1:
        raise ConfigError(f"strategy.{field} is {tickets}; at least 1 client must be at work.")
    if tickets > num_clients and not sampler.queues:
        raise ConfigError(
            f"strategy.{field} is {tickets}, but there are only {num_clients} clients and this sampler gives each one "
            f"ticket at a time. Set {field} to at most {num_clients}, or use a sampler that queues (uniform_all)."
        )
    if work.start == "own" and sampler.queues:
        raise ConfigError(
            "strategy.sampler gives tickets to busy clients too, but clients start from their own model, which is "
            'still changing while they are busy. Use the sampler uniform_idle, or work.start = "server".'
        )
    if work.remembers and sampler.queues:
        raise ConfigError(
            "strategy.sampler gives tickets to busy clients too, but with this work.uplink or work.downlink they "
            "remember something, which is still changing while they are busy. Use the sampler uniform_idle, or uplinks "
            "without a memory and no downlink."
        )


def check_positive(field: str, value: float) -> None:
    """Refuse a hyper-parameter that is not a positive, finite number."""
    if not 0 < value < inf:
        raise ConfigError(f"strategy.{field} is {value}; it must be a positive number.")


def check_between(field: str, value: float, low: float, high: float) -> None:
    """Refuse a hyper-parameter outside `low < value <= high`."""
    if not low < value <= high:
        raise ConfigError(f"strategy.{field} is {value}; it must be above {low:g} and at most {high:g}.")
