"""Reputation, for any strategy: who is dropped or filtered again and again is set aside, and may come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.record import Config, Record, field, replace, with_field_type
from asyncfed.core.types import Action, Dispatch, Drop, Merge, Train, Update
from asyncfed.registry import register
from asyncfed.strategies.protocol import Strategy, View, WakingStrategy
from asyncfed.strategies.wrapping import BusyView, Wrapper


class ReputationState(Record):
    """The wrapped strategy's state, and what is known of clients; lists are changed in place.

    Args:
        inner: the wrapped strategy's.
        reports: how many reports there were.
        bad: by client, its aged count of updates that were dropped or suspicious.
        judged: by client, its aged count of updates that were judged.
        since: by client, the value of `reports` at which both were last aged.
        aside: clients that are set aside, in order of number.
        waiting: tickets that were reported and not judged yet, with their clients.
    """

    inner: Any
    reports: int = 0
    bad: list[float] = field(default_factory=list)
    judged: list[float] = field(default_factory=list)
    since: list[int] = field(default_factory=list)
    aside: tuple[int, ...] = ()
    waiting: tuple[tuple[int, int], ...] = ()


class _Hidden:
    """A view in which some clients are not here."""

    def __init__(self, view: View, hidden: tuple[int, ...]) -> None:
        self._view = view
        self.clients = ClientPool([client for client in view.clients if client not in hidden])
        self.idle = ClientPool([client for client in view.idle if client not in hidden])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


@register("strategy")
class Reputation(Wrapper, Config, tag_field="kind", tag="reputation"):
    """Any strategy, in which a client is set aside whose updates are mostly dropped or filtered.

    An update that the wrapped strategy drops is a bad one; one that it merges is as bad as its `suspicion` says, from 0
    to 1, where a rule measures it (`robust` does), else it is good. Of each client

        share = bad / judged,     both halved whenever `half_life` more reports, of anybody, have arrived

    A client with at least `fewest_judged` judged updates, aged, and a share of `threshold` or more is set aside: to the
    wrapped strategy it has left. It gets no tickets, others have its slot, and what it still reports is dropped, with
    the reason. After `half_life` reports it is back on probation: half as many bad updates set it aside again. Never
    are so many set aside that not more than half of the clients, and at least `fewest_left`, remain.

    It withstands no lies itself: it saves the time that liars cost, and bounds how often they are heard. A client that
    is dropped because it is slow (`bounded_staleness` inside) loses its reputation too.

    Args:
        strategy: the strategy that is wrapped.
        threshold: the share from which on a client is set aside, above 0 and at most 1.
        fewest_judged: how many updates of it must have been judged, aged, 1 or more.
        half_life: after how many reports, of all clients, what was seen counts half, and who was set aside is back; 1
            or more.
        fewest_left: how many clients are never set aside, 1 or more.

    >>> from asyncfed.strategies import AFLGuard
    >>> Reputation(strategy=AFLGuard(concurrency=3)).dispatch.tickets
    3
    """

    strategy: Strategy
    threshold: float = 0.8
    fewest_judged: float = 3.0
    half_life: int = 200
    fewest_left: int = 2
    single_updates = "it judges clients by what becomes of each of their updates"

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ConfigError(f"strategy.threshold is {self.threshold}; it must be above 0 and at most 1.")
        for name in ("fewest_judged", "half_life", "fewest_left"):
            if not getattr(self, name) >= 1:
                raise ConfigError(f"strategy.{name} is {getattr(self, name)}; it must be at least 1.")

    @property
    def state_type(self) -> type[Any]:
        """The state's class, with the wrapped strategy's filled in."""
        return with_field_type(ReputationState, "inner", self.strategy.state_type)

    def start(self, view: View) -> tuple[ReputationState, Sequence[Action]]:
        """The wrapped strategy's start."""
        inner, actions = self.strategy.start(view)
        return ReputationState(inner), actions

    def on_update(self, state: ReputationState, update: Update, view: View) -> tuple[ReputationState, Sequence[Action]]:
        """Hand the report on, unless its client is set aside; judge what was decided."""
        report = update.report
        client, ticket = report.client, report.ticket
        state, back = self._let_back(replace(state, reports=state.reports + 1), view)
        seen = _without(view, state.aside)
        if client in state.aside:
            share = self._share(state, client)
            drop = Drop(ticket, f"client {client} is set aside: {share:.0%} of its updates were bad")
            inner, actions = self.strategy.on_lost(state.inner, update.dispatch, seen)
            return replace(state, inner=inner), [*back, drop, *actions]
        inner, actions = self.strategy.on_update(state.inner, update, seen)
        suspicion = (report.metrics or {}).get("suspicion", 0.0)
        state = replace(state, inner=inner, waiting=(*state.waiting, (ticket, client)))
        after, more = self._judge(state, actions, {ticket: suspicion}, view)
        return after, [*back, *actions, *more]

    def on_lost(
        self, state: ReputationState, dispatch: Dispatch, view: View
    ) -> tuple[ReputationState, Sequence[Action]]:
        """The wrapped strategy's."""
        inner, actions = self.strategy.on_lost(state.inner, dispatch, _without(view, state.aside))
        return self._judged(replace(state, inner=inner), actions, view)

    def on_join(self, state: ReputationState, client: int, view: View) -> tuple[ReputationState, Sequence[Action]]:
        """The wrapped strategy's, unless the client is set aside."""
        if client in state.aside:
            return state, ()
        inner, actions = self.strategy.on_join(state.inner, client, _without(view, state.aside))
        return self._judged(replace(state, inner=inner), actions, view)

    def on_leave(self, state: ReputationState, client: int, view: View) -> tuple[ReputationState, Sequence[Action]]:
        """The wrapped strategy's, unless the client had left for it already."""
        if client in state.aside:
            return state, ()
        inner, actions = self.strategy.on_leave(state.inner, client, _without(view, state.aside))
        return self._judged(replace(state, inner=inner), actions, view)

    def on_wake(
        self, state: ReputationState, number: int, now: float, view: View
    ) -> tuple[ReputationState, Sequence[Action]]:
        """The wrapped strategy's; called only if it set a timer."""
        waking = cast(WakingStrategy, self.strategy)
        inner, actions = waking.on_wake(state.inner, number, now, _without(view, state.aside))
        return self._judged(replace(state, inner=inner), actions, view)

    # ---- judging -----------------------------------------------------------------------------------------------

    def _judged(
        self, state: ReputationState, actions: Sequence[Action], view: View
    ) -> tuple[ReputationState, Sequence[Action]]:
        after, more = self._judge(state, actions, {}, view)
        return after, [*actions, *more]

    def _judge(
        self, state: ReputationState, actions: Sequence[Action], suspicions: dict[int, float], view: View
    ) -> tuple[ReputationState, list[Action]]:
        """Count what was merged and dropped; set clients aside that it makes too bad."""
        client_of, done, more = dict(state.waiting), set[int](), list[Action]()
        for action in actions:
            dropped = (action.ticket,) if isinstance(action, Drop) else ()
            for ticket in action.tickets if isinstance(action, Merge) else dropped:
                if ticket in client_of:
                    done.add(ticket)
                    bad = 1.0 if isinstance(action, Drop) else suspicions.get(ticket, 0.0)
                    self._count(state, client_of[ticket], bad)
        if not done:
            return state, more
        state = replace(state, waiting=tuple(each for each in state.waiting if each[0] not in done))
        for client in sorted({client_of[ticket] for ticket in done}):
            if self._is_bad(state, client) and client in view.clients and self._may_set_aside(state, view):
                scale = self.fewest_judged / state.judged[client]  # so that it is back after one half-life
                state.bad[client], state.judged[client] = scale * state.bad[client], self.fewest_judged
                state = replace(state, aside=tuple(sorted((*state.aside, client))))
                inner, left = self.strategy.on_leave(state.inner, client, _without(view, state.aside))
                state = replace(state, inner=inner)
                more += [action for action in left if not isinstance(action, Train)]
        return state, more

    def _count(self, state: ReputationState, client: int, bad: float) -> None:
        missing = client + 1 - len(state.bad)
        if missing > 0:
            state.bad.extend([0.0] * missing)
            state.judged.extend([0.0] * missing)
            state.since.extend([state.reports] * missing)
        self._age(state, client)
        state.bad[client] += bad
        state.judged[client] += 1.0

    def _age(self, state: ReputationState, client: int) -> None:
        factor = 0.5 ** ((state.reports - state.since[client]) / self.half_life)
        state.bad[client] *= factor
        state.judged[client] *= factor
        state.since[client] = state.reports

    def _share(self, state: ReputationState, client: int) -> float:
        return state.bad[client] / state.judged[client] if state.judged[client] > 0 else 0.0

    def _is_bad(self, state: ReputationState, client: int) -> bool:
        return state.judged[client] >= self.fewest_judged - 1e-9 and self._share(state, client) >= self.threshold

    def _may_set_aside(self, state: ReputationState, view: View) -> bool:
        """Whether enough clients remain without one more."""
        here = len(view.clients)
        left = here - sum(client in view.clients for client in state.aside) - 1
        return left >= self.fewest_left and 2 * left > here

    def _let_back(self, state: ReputationState, view: View) -> tuple[ReputationState, list[Action]]:
        """Who was set aside long enough joins the wrapped strategy again."""
        actions: list[Action] = []
        for client in state.aside:
            if state.reports - state.since[client] >= self.half_life and not view.load(client):
                self._age(state, client)
                state = replace(state, aside=tuple(each for each in state.aside if each != client))
                if client in view.clients:  # the report that has just arrived fills the places, not this
                    seen = cast(View, BusyView(_without(view, state.aside), None))
                    inner, more = self.strategy.on_join(state.inner, client, seen)
                    state = replace(state, inner=inner)
                    actions += more
        return state, actions


def _without(view: View, aside: tuple[int, ...]) -> View:
    return cast(View, _Hidden(view, aside)) if aside else view
