"""A bound on staleness, for any strategy: what is too stale is dropped or counts less, or merges wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record, replace, with_field_type
from asyncfed.core.types import Action, Dispatch, Drop, Merge, Update
from asyncfed.registry import register
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.protocol import Strategy, View, WakingStrategy
from asyncfed.strategies.wrapping import BusyView, Wrapper, scale_weights

WhenStale: TypeAlias = Literal["drop", "damp", "wait"]


def check_bound(max_staleness: int | None, when_stale: WhenStale) -> None:
    """Refuse a bound below 0, and a `when_stale` where there is no bound."""
    if max_staleness is None and when_stale != "drop":
        raise ConfigError(
            f'strategy.when_stale is "{when_stale}" without a bound; set strategy.max_staleness (0 or more).'
        )
    if max_staleness is not None and max_staleness < 0:
        raise ConfigError(f"strategy.max_staleness is {max_staleness}; it must be 0 or more.")


def drop_stale(update: Update, bound: int) -> Drop:
    """The decision to forget an update that is too stale."""
    return Drop(update.report.ticket, f"staleness {update.staleness} is above max_staleness {bound}")


def may_merge(view: View, bound: int, merges: int = 1) -> bool:
    """Whether so many merges leave every ticket in flight within the bound."""
    oldest = view.oldest_base
    return oldest is None or view.version + merges - oldest <= bound


class BoundedState(Record):
    """The wrapped strategy's state, updates that wait, and the factors of damped ones not merged yet, by ticket."""

    inner: Any
    waiting: tuple[Update, ...] = ()
    factors: tuple[tuple[int, float], ...] = ()


@register("strategy")
class BoundedStaleness(Wrapper, Config, tag_field="kind", tag="bounded_staleness"):
    """Any strategy, with the staleness of what it merges bounded.

    Args:
        strategy: the strategy that is wrapped.
        max_staleness: the bound, in versions, 0 or more.
        when_stale: "drop" forgets an update above the bound, and for the wrapped strategy its ticket is lost;
            "damp" multiplies its weight by `damping(staleness - max_staleness)`; "wait" hands updates to the wrapped
            strategy only when no ticket in flight would exceed the bound by the merge. What a strategy merges by a
            timer of its own (FedCompass) does not wait.
        damping: the discount of "damp".

    >>> from asyncfed.strategies import FedAsync
    >>> BoundedStaleness(strategy=FedAsync(concurrency=3), max_staleness=4).dispatch.tickets
    3
    """

    strategy: Strategy
    max_staleness: int
    when_stale: WhenStale = "drop"
    damping: Discount = Polynomial(power=0.5)

    def __post_init__(self) -> None:
        check_bound(self.max_staleness, self.when_stale)

    @property
    def state_type(self) -> type[Any]:
        """The state's class, with the wrapped strategy's filled in."""
        return with_field_type(BoundedState, "inner", self.strategy.state_type)

    def start(self, view: View) -> tuple[BoundedState, Sequence[Action]]:
        """The wrapped strategy's start."""
        inner, actions = self.strategy.start(view)
        return BoundedState(inner), actions

    def on_update(self, state: BoundedState, update: Update, view: View) -> tuple[BoundedState, Sequence[Action]]:
        """Drop, damp or hold the update, or hand it on."""
        if self.when_stale == "wait":
            return self._release(replace(state, waiting=(*state.waiting, update)), view)
        late = update.staleness - self.max_staleness
        if late > 0 and self.when_stale == "drop":
            inner, actions = self.strategy.on_lost(state.inner, update.dispatch, view)
            return replace(state, inner=inner), [drop_stale(update, self.max_staleness), *actions]
        if late > 0:
            factor = (update.report.ticket, self.damping.weight(late))
            state = replace(state, factors=(*state.factors, factor))
        inner, actions = self.strategy.on_update(state.inner, update, view)
        return self._damp(replace(state, inner=inner), actions)

    def on_lost(self, state: BoundedState, dispatch: Dispatch, view: View) -> tuple[BoundedState, Sequence[Action]]:
        """The wrapped strategy's; what waited for this ticket is released."""
        return self._release(state, view, lost=dispatch)

    def on_join(self, state: BoundedState, client: int, view: View) -> tuple[BoundedState, Sequence[Action]]:
        """The wrapped strategy's."""
        inner, actions = self.strategy.on_join(state.inner, client, BusyView(view, len(state.waiting)))
        return replace(state, inner=inner), actions

    def on_leave(self, state: BoundedState, client: int, view: View) -> tuple[BoundedState, Sequence[Action]]:
        """The wrapped strategy's."""
        inner, actions = self.strategy.on_leave(state.inner, client, view)
        return replace(state, inner=inner), actions

    def on_wake(
        self, state: BoundedState, number: int, now: float, view: View
    ) -> tuple[BoundedState, Sequence[Action]]:
        """The wrapped strategy's; called only if it set a timer."""
        seen = BusyView(view, len(state.waiting))
        inner, actions = cast(WakingStrategy, self.strategy).on_wake(state.inner, number, now, seen)
        return self._damp(replace(state, inner=inner), actions)

    def _damp(self, state: BoundedState, actions: Sequence[Action]) -> tuple[BoundedState, Sequence[Action]]:
        if not state.factors:
            return state, actions
        factors = dict(state.factors)
        damped = [scale_weights(a, factors) if isinstance(a, Merge) else a for a in actions]
        done = {t for a in actions if isinstance(a, Merge) for t in a.tickets}
        done |= {a.ticket for a in actions if isinstance(a, Drop)}
        return replace(state, factors=tuple(f for f in state.factors if f[0] not in done)), damped

    def _release(
        self, state: BoundedState, view: View, lost: Dispatch | None = None
    ) -> tuple[BoundedState, Sequence[Action]]:
        """Hand on as many waiting updates, oldest first, as the bound allows; only the last call may fill places.

        Each may lead to a merge, so each adds a version to what is in flight.
        """
        inner, actions, merges, waiting = state.inner, list[Action](), 0, list(state.waiting)
        while waiting and may_merge(view, self.max_staleness, merges + 1):
            update = waiting.pop(0)
            stale = view.version + merges - update.dispatch.base_version
            last = lost is None and not (waiting and may_merge(view, self.max_staleness, merges + 2))
            seen = BusyView(view, len(waiting)) if last else BusyView(view, None)
            inner, decided = self.strategy.on_update(inner, replace(update, staleness=stale), seen)
            actions.extend(decided)
            merges += sum(isinstance(action, Merge) for action in decided)
        if lost is not None:
            inner, decided = self.strategy.on_lost(inner, lost, BusyView(view, len(waiting)))
            actions.extend(decided)
        return replace(state, inner=inner, waiting=tuple(waiting)), actions
