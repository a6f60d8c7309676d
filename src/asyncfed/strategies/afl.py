"""AFL: the asynchronous federated learning of the paper, in its four readings of "Aggregate".

Paper: Forootani & Iervolino, "Asynchronous Federated Learning: A Scalable Approach for Decentralized Machine Learning",
Algorithm 1.

Rule: J tickets are out; every report is merged on arrival and the next ticket goes out at once.

    "latest"      x = mean over clients of the latest w_c, the first model for who never reported    Algorithm 1
    "mixing"      x = (1 - s) x + s w_i,  s = 1/2           the published server's rule, with clients that download
    "delta_mean"  x = x + (1/J) (w_i - w_base)              the mean of a round's deltas, one by one
    "delta_sum"   x = x + (w_i - w_base)                    the proofs

`max_staleness` drops, damps or waits for what is older. With a bound of 0, "wait" makes barrier rounds, which with
`delta_mean` are synchronous FL. A round is J merged updates. Under `latest` a client that leaves is out of the mean
from the next merge on, and in it again from its first merged report after it has come back.

State: "latest" a model per client at the server; the others none. Bytes beyond the model: none.

When to use it: `mixing` as a first asynchronous choice, `latest` to follow the paper, `delta_mean` where an arrival is
to be one step among J, `delta_sum` to see what the analysis analyses. Averaging models cannot blow up through
staleness; adding stale deltas can, and the sum sooner than the mean.

What goes wrong elsewhere: barrier rounds called asynchronous; clients that never download the model; staleness guessed
from the number of merges because a report does not carry its version.

Confirmed: the paper's text, proofs and published scripts were read; where they disagree, each reading is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Action, Combine, Dispatch, Merge, Payload, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_rule import ArrivalRule
from asyncfed.strategies.bounded_staleness import WhenStale, check_bound, drop_stale, may_merge
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import KeepBusy, RuledStrategy, check_between
from asyncfed.strategies.fedasync import CountingState
from asyncfed.strategies.latest_mean import insert, mean_of_latest, without
from asyncfed.strategies.participation_weights import count_merge, participation_factor
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import DelayAware


class Held(Record):
    """An update that waits to be merged."""

    ticket: int
    client: int


class AFLState(CountingState):
    """Updates held back by the bound on staleness, and for "latest" who left and who joined.

    `departed` are clients of the mean that left since the last merge; `joined`, in order of number, are here but not in
    the mean, because none of their reports has been merged since they joined.
    """

    held: tuple[Held, ...] = ()
    departed: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()


@register("strategy")
class AFL(KeepBusy, RuledStrategy, tag_field="kind", tag="afl"):
    """AFL: J clients out of C are at work; every report is merged on arrival, and the next ticket goes out at once.

    Each client starts from the server's model of its download. A round is J merged updates. The readings:

        latest      x = sum_c n_c w_c / sum_c n_c   w_c the latest model of client c (x0 if it never reported), n_c = 1
                                                    or its samples: Algorithm 1 with "averaging", literally
        mixing      x = (1 - s) x + s w_i           s = `mixing`, one half in the published server
        delta_mean  x = x + (1/J) (w_i - w_base)    the average of the round's deltas, one by one
        delta_sum   x = x + (w_i - w_base)          the sum the proofs use

    The mean of "latest" is over the clients that are here. One that leaves is out of it from the next merge on, and its
    model is forgotten; if it is back before that merge, it has missed nothing and stays in the mean. One that comes
    back later, or joins after the start, is in the mean from its first merged report on. So no absence throws the model
    back to x0.

    Args:
        concurrency: J, tickets out at once, 1 or more.
        aggregate: the reading, "latest", "mixing", "delta_mean" or "delta_sum".
        mixing: s, above 0 and at most 1; used by "mixing" only.
        weighting: "equal"; "samples", in which a delta counts n_i over the mean of n, the samples being those a client
            declared when it joined; or "inverse_participation", in which a mixing or a delta counts the factor of
            `strategies/participation_weights.py` ("latest" needs none: each client is in its mean once).
        max_staleness: the paper's tau_max, in versions, 0 or more; None for no bound.
        when_stale: what happens beyond it. "drop" forgets the update; "damp" multiplies its weight by
            `damping(staleness - max_staleness)`; "wait" holds merges back until no ticket in flight would exceed the
            bound, and then merges what was held in one step. With a bound of 0, "wait" makes barrier rounds: with
            "delta_mean" those are synchronous FL; "latest" still averages over all clients, "mixing" still keeps
            1 - s of the old model, and "delta_sum" adds deltas up.
        damping: the discount of "damp".
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows rounds and delays.
        rule: how arrivals become the next model; left out, as above. Not with "latest", which has a rule of its own.

    >>> AFL(aggregate="mixing", max_staleness=3).when_stale
    'drop'

    Forootani & Iervolino, "Asynchronous Federated Learning: A Scalable Approach for Decentralized Machine Learning",
    Algorithm 1.
    """

    concurrency: int = 5
    aggregate: Literal["latest", "mixing", "delta_mean", "delta_sum"] = "latest"
    mixing: float = 0.5
    weighting: Literal["equal", "samples", "inverse_participation"] = "equal"
    max_staleness: int | None = None
    when_stale: WhenStale = "drop"
    damping: Discount = Polynomial(power=0.5)
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = DelayAware()

    state_class: ClassVar[type[Any]] = AFLState
    any_population: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("mixing", self.mixing, 0.0, 1.0)
        if self.weighting == "samples" and self.aggregate == "mixing":
            raise ConfigError(
                'strategy.weighting is "samples", but mixing has a fixed weight; use "latest" or a delta rule instead.'
            )
        if self.weighting == "inverse_participation" and self.aggregate == "latest":
            raise ConfigError(
                'strategy.weighting is "inverse_participation", but "latest" has every client in its mean once, '
                'however often it is merged; leave it at "equal", or use "mixing" or a delta rule.'
            )
        check_bound(self.max_staleness, self.when_stale)

    def on_update(self, state: AFLState, update: Update, view: View) -> tuple[AFLState, Sequence[Action]]:
        """Merge the update, unless it is too stale or has to wait."""
        report, bound = update.report, self.max_staleness
        if bound is not None and self.when_stale == "wait":
            return self._release(replace(state, held=(*state.held, Held(report.ticket, report.client))), view)
        if bound is not None and self.when_stale == "drop" and update.staleness > bound:
            return self.refill(state, view, [drop_stale(update, bound)])
        return self._merge(state, (report.ticket,), (report.client,), (self._fraction(update.staleness),), view)

    def _fraction(self, staleness: int) -> float:
        """What is taken of an update that is merged: all of it, or less if it is above the bound."""
        late = 0 if self.max_staleness is None else staleness - self.max_staleness
        return self.damping.weight(late) if late > 0 else 1.0

    def on_lost(self, state: AFLState, dispatch: Dispatch, view: View) -> tuple[AFLState, Sequence[Action]]:
        """The lost ticket may have been what others waited for."""
        return self._release(state, view)

    def on_join(self, state: AFLState, client: int, view: View) -> tuple[AFLState, Sequence[Action]]:
        """More tickets, if there were not clients enough."""
        if client in state.departed:
            state = replace(state, departed=without(state.departed, (client,)))
        elif self.aggregate == "latest":
            state = replace(state, joined=insert(state.joined, client))
        return self.refill(state, view, [], len(state.held))

    def on_leave(self, state: AFLState, client: int, view: View) -> tuple[AFLState, Sequence[Action]]:
        """Under "latest", the client's model is left out of the mean from the next merge on."""
        if client in state.joined:
            state = replace(state, joined=without(state.joined, (client,)))
        elif self.aggregate == "latest":
            state = replace(state, departed=(*state.departed, client))
        return state, ()

    def _release(self, state: AFLState, view: View) -> tuple[AFLState, Sequence[Action]]:
        """Merge what is held, in one step, unless that would push a ticket in flight above the bound."""
        if not state.held or not may_merge(view, self.max_staleness or 0):
            return self.refill(state, view, [], len(state.held))
        tickets, clients = tuple([h.ticket for h in state.held]), tuple([h.client for h in state.held])
        return self._merge(replace(state, held=()), tickets, clients, (1.0,) * len(tickets), view)

    def _merge(
        self,
        state: AFLState,
        tickets: tuple[int, ...],
        clients: tuple[int, ...],
        fractions: tuple[float, ...],
        view: View,
    ) -> tuple[AFLState, Sequence[Action]]:
        """Merge these tickets in one step, taking of each the given fraction (1, or less if damped)."""
        count, total = state.merged_this_round + len(tickets), 0
        if self.weighting == "inverse_participation":
            fractions, total = _weigh_by_participation(state, clients, fractions, view)
        ends_round = count >= self.concurrency
        weights, keep, rule = self._weights(clients, fractions, state, view)
        of: Payload = "model" if self.aggregate in ("latest", "mixing") else "delta"
        merge = Merge(tickets, weights, keep=keep, of=of, combiner=rule, ends_round=ends_round)
        left = count - self.concurrency if ends_round else count
        joined = without(state.joined, clients) if state.joined else ()
        after = AFLState(state.sampling, left, state.merges, total, state.held, (), joined)  # once per update: fast
        return self.refill(after, view, [merge], len(state.held))

    def _weights(
        self, clients: tuple[int, ...], fractions: tuple[float, ...], state: AFLState, view: View
    ) -> tuple[tuple[float, ...], float, Combine | None]:
        """What each update counts, what is kept of the model, and the rule, in this reading of "Aggregate"."""
        if self.aggregate == "latest":
            by_samples = self.weighting == "samples"
            return fractions, 0.0, mean_of_latest(clients, state.departed, state.joined, by_samples, view)
        if self.aggregate == "mixing":
            weights = tuple([min(1.0, self.mixing * f) / len(fractions) for f in fractions])
            return weights, 1.0 - sum(weights), None
        scale = 1.0 / self.concurrency if self.aggregate == "delta_mean" else 1.0
        if self.weighting == "samples":
            mean = max(1.0, view.total_examples / max(1, len(view.clients)))
            fractions = tuple([f * view.num_examples(c) / mean for c, f in zip(clients, fractions, strict=True)])
        return tuple([scale * f for f in fractions]), 1.0, None

    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """What `on_update` does, if it follows from the staleness alone."""
        damps = self.max_staleness is None or self.when_stale == "damp"
        if not (self.may_decide_ahead and self.weighting == "equal" and damps):
            return None

        def weigh(staleness: int) -> tuple[tuple[float, ...], float, Combine | None]:
            return self._weights((0,), (self._fraction(staleness),), AFLState(None), view)

        kind: Any = {"latest": "latest", "mixing": "mix"}.get(self.aggregate, "add")
        return ArrivalRule(kind, self.concurrency, lambda staleness: weigh(staleness)[0][0], weigh(0)[2])


def _weigh_by_participation(
    state: AFLState, clients: tuple[int, ...], fractions: tuple[float, ...], view: View
) -> tuple[tuple[float, ...], int]:
    """The fractions, larger for clients that are merged more rarely; and how many merges were counted."""
    total, weighed = state.total_merges or sum(state.merges), []
    for client, fraction in zip(clients, fractions, strict=True):
        weighed.append(fraction * participation_factor(state.merges, total, client, len(view.clients)))
        count_merge(state.merges, client)
        total += 1
    return tuple(weighed), total


for _name, _aggregate, _memory, _words in (
    ("afl", "latest", "n", "AFL, mean of every client's latest model (Algorithm 1)"),
    ("afl_mixing", "mixing", "0", "AFL, mixing by one half (the published server rule, with clients that download)"),
    ("afl_delta_mean", "delta_mean", "0", "AFL, average of deltas"),
    ("afl_delta_sum", "delta_sum", "0", "AFL, sum of deltas (the proofs' rule)"),
):
    add_algorithm(
        Algorithm(
            name=_name,
            summary=_words,
            make=lambda tickets, work, rate, aggregate=_aggregate: AFL(  # type: ignore[misc]
                concurrency=tickets, aggregate=aggregate, work=work, schedule=rate
            ),
            family="the paper's",
            year=2024,
            timing="asynchronous",
            data="similar",
            server_memory=_memory,
            certificate="the paper's, and ours along a run",
            evidence="text and code",
        ),
        __name__,
    )
