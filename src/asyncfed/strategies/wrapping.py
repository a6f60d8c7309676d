"""What strategies that wrap another one share: its settings, changing the weights of its merges, what it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from sys import maxsize
from typing import Any, cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.record import UNSET, UnsetType, replace
from asyncfed.core.types import Merge, Schedule, Update, Work
from asyncfed.rules.protocol import ServerRule, rule_of
from asyncfed.strategies.dispatch import Dispatching, DispatchPolicy
from asyncfed.strategies.protocol import ObservingStrategy, Strategy, View
from asyncfed.strategies.samplers import Sampler
from asyncfed.strategies.single_updates import SumOnly


class Wrapper(SumOnly):
    """A strategy around `strategy`: it dispatches as that one does, and fits as many clients.

    The state of that one is the field `inner` of its own.
    """

    __slots__ = ()
    strategy: Strategy

    @property
    def work(self) -> Work:
        """The wrapped strategy's."""
        return self.strategy.work

    @property
    def dispatch(self) -> DispatchPolicy:
        """The wrapped strategy's."""
        return self._dispatching().dispatch

    @property
    def sampler(self) -> Sampler:
        """The wrapped strategy's."""
        return self._dispatching().sampler

    @property
    def schedule(self) -> Schedule | None:
        """The wrapped strategy's."""
        return self._dispatching().schedule

    @property
    def rule(self) -> ServerRule | UnsetType:
        """The wrapped strategy's."""
        return rule_of(self.strategy) or UNSET

    def round_size(self, num_clients: int) -> int:
        """The wrapped strategy's."""
        return self._dispatching().round_size(num_clients)

    def check(self, num_clients: int) -> None:
        """Refuse what the wrapped strategy refuses."""
        self.strategy.check(num_clients)

    @property
    def observes(self) -> bool:
        """The wrapped strategy's."""
        return bool(getattr(self.strategy, "observes", False))

    def observe(self, state: Any, update: Update, view: View) -> Any:
        """Show the wrapped strategy a report; called only if it observes."""
        return replace(state, inner=cast(ObservingStrategy, self.strategy).observe(state.inner, update, view))

    def _dispatching(self) -> Dispatching:
        """An AttributeError says that this wrapper, too, does not say how it dispatches."""
        if not isinstance(self.strategy, Dispatching):
            raise AttributeError(f"{type(self.strategy).__name__} does not say how it dispatches.")
        return self.strategy


def scale_weights(merge: Merge, factors: Mapping[int, float]) -> Merge:
    """The merge with the weights of some tickets multiplied by `factors[ticket]`, at most 1 where models are mixed.

    What a mean of models (`keep` 0) loses is shared among its members; what a mixed model loses, the server's keeps.

    >>> scale_weights(Merge((7,), (0.5,), 0.5, "model"), {7: 0.5})
    Merge(tickets=(7,), weights=(0.25,), keep=0.75, of='model', combiner=None, ends_round=False)
    """
    if not factors.keys() & set(merge.tickets):
        return merge
    weights = [w * factors.get(t, 1.0) for t, w in zip(merge.tickets, merge.weights, strict=True)]
    if merge.of == "delta" or merge.combiner is not None:
        return replace(merge, weights=tuple(weights))
    if merge.keep == 0.0:
        total = sum(weights)
        if not total > 0:
            raise ConfigError(f"all {len(weights)} updates of a merge have weight 0, so they have no mean.")
        return replace(merge, weights=tuple([w / total for w in weights]))
    weights = [min(1.0, w) for w in weights]
    return replace(merge, weights=tuple(weights), keep=1.0 - sum(weights))


class BusyView:
    """A view in which more tickets seem to be out: `held` more, or None for so many that none are missing."""

    __slots__ = ("_view", "in_flight")

    def __init__(self, view: View, held: int | None) -> None:
        self._view = view
        self.in_flight = maxsize if held is None else view.in_flight + held

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


class PoolWithout:
    """A pool in which one client is missing. Its place is taken by the last one."""

    __slots__ = ("_hidden", "_pool")

    def __init__(self, pool: ClientPool, hidden: int) -> None:
        self._pool = pool
        self._hidden = hidden

    def __len__(self) -> int:
        return len(self._pool) - (self._hidden in self._pool)

    def __getitem__(self, position: int) -> int:
        if not 0 <= position < len(self):
            raise IndexError(position)
        client = self._pool[position]
        return client if client != self._hidden else self._pool[len(self)]

    def __contains__(self, client: int) -> bool:
        return client != self._hidden and client in self._pool


class ViewWithout:
    """A view in which one client is not here, so that no sampler draws it."""

    __slots__ = ("_view", "clients", "idle")

    def __init__(self, view: View, hidden: int) -> None:
        self._view = view
        self.clients: Any = PoolWithout(view.clients, hidden)
        self.idle: Any = PoolWithout(view.idle, hidden)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)
