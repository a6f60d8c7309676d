"""AFL: the asynchronous federated learning of the paper, in its four readings of "Aggregate".

Forootani & Iervolino, "Asynchronous Federated Learning: A Scalable Approach for Decentralized Machine Learning",
Algorithm 1. J clients out of C are in flight; each starts from the server's model of its download; the server merges
every report on arrival and at once hands out the next ticket. A round is J merged updates. The readings:

    latest      x = sum_c n_c w_c / sum_c n_c   w_c the latest model of client c (x0 if not heard from), n_c = 1 or its
                                                samples: Algorithm 1 with "averaging", literally; the default
    mixing      x = (1 - s) x + s w_i           s = `mixing`, one half in the published server
    delta_mean  x = x + (1/J) (w_i - w_base)    the average of the round's deltas, one by one
    delta_sum   x = x + (w_i - w_base)          the sum the proofs use

With `weighting = "samples"` a delta counts n_i / (mean of n over the clients here). The samples are those a client
declared when it joined, so that the weights of all clients add up. With `weighting = "inverse_participation"` a mixing
or a delta counts the factor of `strategies/participation.py`; `latest` needs none, each client being in its mean once.

Staleness above `max_staleness` (the paper's Assumption on tau_max) is dealt with `when_stale`: `drop` forgets the
update, `damp` multiplies its weight by `damping(staleness - max_staleness)`, `wait` holds merges back until no one in
flight would exceed the bound; what was held is then merged in one step. With a bound of 0, `wait` is synchronous FL.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Action, Combine, Dispatch, Drop, Merge, Payload, Update, View, Work
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import check_between, check_crowd, hand_out
from asyncfed.strategies.participation_weights import Counts, counted, participation_factor
from asyncfed.strategies.samplers import Sampler, SamplerMemory, UniformIdle
from asyncfed.strategies.schedules import DelayAware, RateSchedule

Numbers: TypeAlias = tuple[int, ...]


class Held(Record):
    """An update that waits to be merged."""

    ticket: int
    client: int


class State(Record):
    sampling: SamplerMemory = None
    merged_this_round: int = 0
    held: tuple[Held, ...] = ()
    departed: tuple[int, ...] = ()
    merges: Counts = ()


class AFL(Config, tag_field="kind", tag="afl"):
    concurrency: int = 5
    aggregate: Literal["latest", "mixing", "delta_mean", "delta_sum"] = "latest"
    mixing: float = 0.5
    weighting: Literal["equal", "samples", "inverse_participation"] = "equal"
    max_staleness: int | None = None
    when_stale: Literal["drop", "damp", "wait"] = "drop"
    damping: Discount = Polynomial(power=0.5)
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: RateSchedule = DelayAware()

    def __post_init__(self) -> None:
        check_between("mixing", self.mixing, 0.0, 1.0)
        if self.weighting == "samples" and self.aggregate == "mixing":
            raise ConfigError(
                'strategy.weighting is "samples", but mixing has a fixed weight; use "latest" or a delta rule instead.'
            )
        if self.weighting == "inverse_participation" and self.aggregate == "latest":
            raise ConfigError(
                'strategy.weighting is "inverse_participation", but "latest" has every client in its mean once, '
                'however often it is heard; leave it at "equal", or use "mixing" or a delta rule.'
            )
        if self.max_staleness is None and self.when_stale != "drop":
            raise ConfigError(
                f'strategy.when_stale is "{self.when_stale}" without a bound; set strategy.max_staleness (0 or more).'
            )
        if self.max_staleness is not None and self.max_staleness < 0:
            raise ConfigError(f"strategy.max_staleness is {self.max_staleness}; it must be 0 or more.")

    @property
    def state_type(self) -> type[State]:
        return State

    def check(self, num_clients: int) -> None:
        check_crowd("concurrency", self.concurrency, self.sampler, self.work.start, num_clients)

    def start(self, view: View) -> tuple[State, Sequence[Action]]:
        return self._refilled(State(self.sampler.start()), view, [])

    def on_update(self, state: State, update: Update, view: View) -> tuple[State, Sequence[Action]]:
        report, bound, fraction = update.report, self.max_staleness, 1.0
        if bound is not None:
            if self.when_stale == "wait":
                return self._release(self._with_held(state, update), view)
            late = update.staleness - bound
            if late > 0 and self.when_stale == "drop":
                reason = f"staleness {update.staleness} is above max_staleness {bound}"
                return self._refilled(state, view, [Drop(report.ticket, reason)])
            if late > 0:
                fraction = self.damping.weight(late)
        return self._merged(state, (report.ticket,), (report.client,), (fraction,), view)

    def on_lost(self, state: State, dispatch: Dispatch, view: View) -> tuple[State, Sequence[Action]]:
        return self._release(state, view)

    def on_join(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        departed = tuple(c for c in state.departed if c != client)
        after = State(state.sampling, state.merged_this_round, state.held, departed, state.merges)
        return self._refilled(after, view, [])

    def on_leave(self, state: State, client: int, view: View) -> tuple[State, Sequence[Action]]:
        if self.aggregate != "latest":
            return state, []
        departed = (*state.departed, client)
        return State(state.sampling, state.merged_this_round, state.held, departed, state.merges), []

    # ---- bounded staleness by waiting ------------------------------------------------------------------------

    def _with_held(self, state: State, update: Update) -> State:
        held = (*state.held, Held(update.report.ticket, update.report.client))
        return State(state.sampling, state.merged_this_round, held, state.departed, state.merges)

    def _release(self, state: State, view: View) -> tuple[State, Sequence[Action]]:
        """Merge what is held, in one step, unless that would push someone in flight above the bound."""
        oldest = view.oldest_base
        bound = self.max_staleness or 0
        if not state.held or (oldest is not None and view.version + 1 - oldest > bound):
            return self._refilled(state, view, [])
        freed = State(state.sampling, state.merged_this_round, (), state.departed, state.merges)
        tickets, clients = tuple([h.ticket for h in state.held]), tuple([h.client for h in state.held])
        return self._merged(freed, tickets, clients, (1.0,) * len(tickets), view)

    # ---- merging ---------------------------------------------------------------------------------------------

    def _merged(
        self, state: State, tickets: Numbers, clients: Numbers, fractions: tuple[float, ...], view: View
    ) -> tuple[State, Sequence[Action]]:
        """Merge these tickets in one step, taking of each the given fraction (1, or less if damped)."""
        count, merges = state.merged_this_round + len(tickets), state.merges
        if self.weighting == "inverse_participation":
            fractions, merges = self._evened(clients, fractions, merges, view)
        ends_round = count >= self.concurrency
        weights, keep, rule = self._weights(clients, fractions, state.departed, view)
        of: Payload = "model" if self.aggregate in ("latest", "mixing") else "delta"
        merge = Merge(tickets, weights, keep, of, rule, ends_round)
        after = State(state.sampling, count - self.concurrency if ends_round else count, state.held, (), merges)
        return self._refilled(after, view, [merge])

    def _weights(
        self, clients: Numbers, fractions: tuple[float, ...], departed: Numbers, view: View
    ) -> tuple[tuple[float, ...], float, Combine | None]:
        """What each update counts, what is kept of the model, and the rule, in this reading of "Aggregate"."""
        if self.aggregate == "latest":
            if self.weighting == "equal":
                return fractions, 0.0, _latest_average((1,) * len(clients), len(view.clients), departed)
            shares = tuple([view.num_examples(client) for client in clients])
            return fractions, 0.0, _latest_average(shares, view.total_examples, departed)
        if self.aggregate == "mixing":
            weights = tuple([min(1.0, self.mixing * f) / len(fractions) for f in fractions])
            return weights, 1.0 - sum(weights), None
        scale = 1.0 / self.concurrency if self.aggregate == "delta_mean" else 1.0
        if self.weighting == "samples":
            mean_examples = max(1.0, view.total_examples / max(1, len(view.clients)))
            fractions = tuple(
                [f * view.num_examples(c) / mean_examples for c, f in zip(clients, fractions, strict=True)]
            )
        return tuple([scale * f for f in fractions]), 1.0, None

    def _evened(
        self, clients: Numbers, fractions: tuple[float, ...], merges: Counts, view: View
    ) -> tuple[tuple[float, ...], Counts]:
        """The fractions, larger for clients that are heard more rarely; and how often each was heard now."""
        evened = []
        for client, fraction in zip(clients, fractions, strict=True):
            evened.append(fraction * participation_factor(merges, client, len(view.clients)))
            merges = counted(merges, client)
        return tuple(evened), merges

    def _refilled(self, state: State, view: View, actions: list[Action]) -> tuple[State, Sequence[Action]]:
        free = self.concurrency - view.in_flight - len(state.held)
        trains, sampling = hand_out(free, self.sampler, state.sampling, view, self.work, self.schedule)
        if sampling is not state.sampling:
            state = State(sampling, state.merged_this_round, state.held, state.departed, state.merges)
        actions.extend(trains)
        return state, actions


@lru_cache(maxsize=64)
def _latest_average(shares: tuple[int, ...], total: int, forget: tuple[int, ...]) -> Combine:
    """The same few rules again and again: made once each."""
    return Combine("latest_average", (("shares", shares), ("total", total), ("forget", forget)))
