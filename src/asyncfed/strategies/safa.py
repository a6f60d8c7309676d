"""SAFA: everybody is at work; a round takes the first that arrive, and who lags a little keeps its progress.

Paper: Wu, He, Lin, Mao, Maple & Jarvis, "SAFA: A Semi-Asynchronous Protocol for Fast Federated Learning With Low
Overhead", IEEE Transactions on Computers 70(5), 2021.

Rule: all clients train. Round t ends when Q of those that were not picked in round t - 1 have arrived; or when Q of any
have, and nobody is worth waiting for: all who began in round t, were not picked before and did not have to begin anew
are there; or when nobody is out; or at the deadline. Then

    picked P:      those not picked in round t - 1 first, then the others, in order of arrival, Q in all
    before:        c_k = w_k for k in P;     c_k = x as it was before round t for clients that were deprecated
    x            = sum_k (n_k / n) c_k       over all clients, c_k being the first model at the start
    after:         c_k = w_k for those that arrived and were not picked (undrafted): they count from round t + 1 on

and everybody who arrived begins anew from x. Who is still at work goes on with its ticket, unless it is now more than
`lag_tolerance` versions old: then it is deprecated, its ticket is cancelled, and it begins anew from x.

State: a model per client at the server. Bytes beyond the model: none; lagging clients save a download.

When to use it: few, slow or unreliable clients whose every bit of progress counts, and room for a model per client.

What goes wrong elsewhere: a mean over the picked alone, whose weights are not n_k / n over all clients; undrafted
models merged in the same round, which makes Q meaningless; one public version puts the picked ones into the cache a
second time, as the new model plus an old change.

Confirmed: the authors' code and its description were read: the order of cache and mean, the selection, Q = C n rounded
up, and lag counted in rounds since the client last got the model. The deadline is theirs too (the longest response
time). The code draws who finishes in a round; that those of earlier rounds are not waited for is how it is read here.
In the code a client that crashed goes on from its own model; here what is lost begins anew from x in the next round.
The paper's tolerance of 5 is from memory (1 is the code's default). The text was not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, Record, UnsetType, replace
from asyncfed.core.types import (
    Action,
    Cancel,
    Combine,
    Dispatch,
    Drop,
    Merge,
    Schedule,
    Train,
    Update,
    Wake,
    Work,
    staleness_of,
)
from asyncfed.registry import register
from asyncfed.rules.model_cache import ModelCache
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import DispatchPolicy, check_positive, check_rule_fits
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import UniformIdle
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.single_updates import SumOnly


class Arrived(Record):
    """A report of the present round."""

    ticket: int
    client: int


class SafaState(Record):
    """The present round: its reports in order of arrival, its number, whether its deadline has passed; who was picked
    in the last one; and whose model in the cache is to become x, or to be forgotten, with the next merge."""

    arrived: tuple[Arrived, ...] = ()
    number: int = 0
    overdue: bool = False
    picked: tuple[int, ...] = ()
    synchronised: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()


Decision: TypeAlias = tuple[SafaState, Sequence[Action]]


def pick_first(arrived: Sequence[int], picked_before: Sequence[int], quota: int) -> list[int]:
    """Compensatory first come, first merge: the clients of a round that are picked.

    Args:
        arrived: clients in order of arrival.
        picked_before: those picked in the round before.
        quota: how many are picked, if so many have arrived.

    Returns:
        Those not picked before first, then the others, each in order of arrival.

    >>> pick_first([4, 1, 3, 2], picked_before=[4, 3], quota=3)
    [1, 2, 4]
    """
    before = set(picked_before)
    return [*(c for c in arrived if c not in before), *(c for c in arrived if c in before)][:quota]


@register("strategy")
class Safa(SumOnly, Config, tag_field="kind", tag="safa"):
    """SAFA: x = sum_k (n_k / n) c_k over all clients, c_k being the model of client k in the server's cache.

    See the head of the module for when a round ends and who is picked. All clients are at work. A round is one merge.

    Args:
        cohort_size: Q = C n, how many are picked in a round, 1 or more and at most the number of clients.
        lag_tolerance: a ticket that is more versions old than this is begun anew, 0 or more.
        deadline: the longest time of a round, in seconds above 0; left out, there is none.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> Safa(lag_tolerance=-1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.lag_tolerance is -1; it must be at least 0 versions.

    Wu et al., "SAFA: A Semi-Asynchronous Protocol for Fast Federated Learning With Low Overhead", IEEE Transactions on
    Computers 2021.
    """

    cohort_size: int = 5
    lag_tolerance: int = 5
    deadline: float | UnsetType = UNSET
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    def __post_init__(self) -> None:
        if self.cohort_size < 1:
            raise ConfigError(f"strategy.cohort_size is {self.cohort_size}; at least 1 client must be picked.")
        if self.lag_tolerance < 0:
            raise ConfigError(f"strategy.lag_tolerance is {self.lag_tolerance}; it must be at least 0 versions.")
        if self.deadline is not UNSET:
            check_positive("deadline", self.deadline)

    @property
    def rule(self) -> ModelCache:
        """The cache of all clients' models."""
        return ModelCache()

    @property
    def sampler(self) -> UniformIdle:
        """None is drawn: all are at work."""
        return UniformIdle()

    @property
    def dispatch(self) -> DispatchPolicy:
        """All clients; who is merged when depends on the delays."""
        return DispatchPolicy("other", self.cohort_size, self.cohort_size)

    def round_size(self, num_clients: int) -> int:
        """How many updates make a round; those that arrive without being picked come on top."""
        return self.cohort_size

    @property
    def state_type(self) -> type[Any]:
        """The state's class."""
        return SafaState

    def check(self, num_clients: int) -> None:
        """Refuse to pick more clients than there are."""
        if self.cohort_size > num_clients:
            raise ConfigError(
                f"strategy.cohort_size is {self.cohort_size}, but there are only {num_clients} clients. Set it to at "
                f"most {num_clients}."
            )
        check_rule_fits(self, self.work, num_clients)

    def start(self, view: View) -> Decision:
        """Everybody."""
        return self._begin(SafaState(), view, [])

    def on_update(self, state: SafaState, update: Update, view: View) -> Decision:
        """Collect the report, and end the round if it was the last that was needed."""
        arrived = (*state.arrived, Arrived(update.report.ticket, update.report.client))
        return self._settle(replace(state, arrived=arrived), view)

    def on_lost(self, state: SafaState, dispatch: Dispatch, view: View) -> Decision:
        """The client begins anew in the next round, which may be now."""
        return self._settle(state, view)

    def on_join(self, state: SafaState, client: int, view: View) -> Decision:
        """The client begins at once, and its model in the cache is x as it is."""
        state = replace(state, synchronised=(*state.synchronised, client))
        if not view.in_flight:
            return self._settle(state, view)
        return state, [Train(client, self.work, self.schedule)]

    def on_leave(self, state: SafaState, client: int, view: View) -> Decision:
        """It is no longer one of all clients, and its report, if there is one, is dropped. Its ticket is lost next."""
        gone = [report for report in state.arrived if report.client == client]
        after = replace(
            state,
            arrived=tuple([report for report in state.arrived if report.client != client]),
            synchronised=tuple([other for other in state.synchronised if other != client]),
            forgotten=(*state.forgotten, client),
        )
        return after, [Drop(report.ticket, "its client has left") for report in gone]

    def on_wake(self, state: SafaState, number: int, now: float, view: View) -> Decision:
        """The deadline of a round; of one that is over it means nothing."""
        return self._settle(replace(state, overdue=True), view) if number == state.number else (state, ())

    def _settle(self, state: SafaState, view: View) -> Decision:
        """End the round if it is complete; begin anew if there is nothing to wait for."""
        if not state.arrived:
            return (state, ()) if view.in_flight else self._begin(state, view, [])
        quota = min(self.cohort_size, len(view.clients))
        if state.overdue or not view.in_flight or self._is_complete(state, quota, view):
            return self._merge(state, quota, view)
        return state, ()

    def _is_complete(self, state: SafaState, quota: int, view: View) -> bool:
        """Whether enough have arrived, and nobody is worth waiting for."""
        if len(state.arrived) < quota:
            return False
        if sum(report.client not in state.picked for report in state.arrived) >= quota:
            return True
        known = {*state.picked, *state.synchronised}
        return not any(d.client not in known and d.base_version == view.version for d in view.outstanding.values())

    def _merge(self, state: SafaState, quota: int, view: View) -> Decision:
        by_samples = view.total_examples > 0

        def count(client: int) -> int:
            return view.num_examples(client) if by_samples else 1

        total = view.total_examples if by_samples else len(view.clients)
        ticket_of = {report.client: report.ticket for report in state.arrived}
        picked = pick_first(list(ticket_of), state.picked, quota)
        order = [*picked, *(client for client in ticket_of if client not in picked)]
        counts = tuple([count(client) for client in order])
        weights = tuple([n / total if place < len(picked) else 0.0 for place, n in enumerate(counts)])
        settings = (
            ("picked", len(picked)),
            ("counts", counts),
            ("total", total),
            ("synchronised", tuple([(client, count(client)) for client in state.synchronised])),
            ("forgotten", state.forgotten),
        )
        merge = Merge(
            tuple([ticket_of[client] for client in order]),
            weights,
            keep=0.0,
            of="model",
            combiner=Combine("model_cache", settings),
            ends_round=True,
        )
        late = [d for d in view.outstanding.values() if staleness_of(d, view.version + 1) > self.lag_tolerance]
        reason = f"it lags more than {self.lag_tolerance} versions behind"
        actions: list[Action] = [merge, *(Cancel(d.ticket, reason) for d in late)]
        after = SafaState(number=state.number, picked=tuple(picked), synchronised=tuple([d.client for d in late]))
        return self._begin(after, view, actions)

    def _begin(self, state: SafaState, view: View, actions: list[Action]) -> Decision:
        """A new round, after these actions: everybody who is idle then trains."""
        idle = sorted({*view.idle, *state.synchronised} & set(view.clients))
        actions += [Train(client, self.work, self.schedule) for client in idle]
        if idle and self.deadline is not UNSET:
            actions.append(Wake(self.deadline, state.number + 1))
        return replace(state, number=state.number + 1, overdue=False), actions


add_algorithm(
    Algorithm(
        name="safa",
        summary="SAFA: all at work, J picked a round, the mean over every client's cached model, lag at most 5",
        make=lambda tickets, work, rate: Safa(cohort_size=tickets, work=work),
        family="semi-synchronous",
        year=2019,
        timing="semi-synchronous",
        data="similar",
        server_memory="n",
        evidence="code",
    ),
    __name__,
)
