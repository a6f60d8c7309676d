"""Inverse participation weights around any strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record, field, replace, with_field_type
from asyncfed.core.types import Action, Dispatch, Drop, Merge, Update
from asyncfed.registry import register
from asyncfed.strategies.participation_weights import count_merge, participation_factor
from asyncfed.strategies.protocol import Strategy, View, WakingStrategy
from asyncfed.strategies.wrapping import Wrapper, scale_weights


class WeightedState(Record):
    """The wrapped strategy's state, merges by client and of all, and (ticket, client) of reports not merged yet."""

    inner: Any
    merges: list[int] = field(default_factory=list)
    total_merges: int = 0
    reported: tuple[tuple[int, int], ...] = ()


@register("strategy")
class ParticipationWeighted(Wrapper, Config, tag_field="kind", tag="participation_weighted"):
    """Any strategy, with each update weighed by how rarely its client was merged before.

        weight_i <- weight_i * (1 + n) / (1 + n_c)      n_c the merges of client c so far, n their mean; at most tenfold

    so that in the long run fast and slow clients count alike. Weights of mixed models are at most 1. It does not go
    with AFL's "latest", whose mean has every client in it once.

    Args:
        strategy: the strategy that is wrapped.

    >>> from asyncfed.strategies import FedBuff
    >>> ParticipationWeighted(strategy=FedBuff(concurrency=3)).dispatch.manner
    'keep_busy'
    """

    strategy: Strategy

    @property
    def state_type(self) -> type[Any]:
        """The state's class, with the wrapped strategy's filled in."""
        return with_field_type(WeightedState, "inner", self.strategy.state_type)

    def start(self, view: View) -> tuple[WeightedState, Sequence[Action]]:
        """The wrapped strategy's start."""
        inner, actions = self.strategy.start(view)
        return WeightedState(inner), actions

    def on_update(self, state: WeightedState, update: Update, view: View) -> tuple[WeightedState, Sequence[Action]]:
        """What the wrapped strategy decides, its merges weighed."""
        reported = (*state.reported, (update.report.ticket, update.report.client))
        inner, actions = self.strategy.on_update(state.inner, update, view)
        return self._weigh(replace(state, inner=inner, reported=reported), actions, view)

    def on_lost(self, state: WeightedState, dispatch: Dispatch, view: View) -> tuple[WeightedState, Sequence[Action]]:
        """What the wrapped strategy decides, its merges weighed."""
        inner, actions = self.strategy.on_lost(state.inner, dispatch, view)
        return self._weigh(replace(state, inner=inner), actions, view)

    def on_join(self, state: WeightedState, client: int, view: View) -> tuple[WeightedState, Sequence[Action]]:
        """What the wrapped strategy decides, its merges weighed."""
        inner, actions = self.strategy.on_join(state.inner, client, view)
        return self._weigh(replace(state, inner=inner), actions, view)

    def on_leave(self, state: WeightedState, client: int, view: View) -> tuple[WeightedState, Sequence[Action]]:
        """What the wrapped strategy decides, its merges weighed."""
        inner, actions = self.strategy.on_leave(state.inner, client, view)
        return self._weigh(replace(state, inner=inner), actions, view)

    def on_wake(
        self, state: WeightedState, number: int, now: float, view: View
    ) -> tuple[WeightedState, Sequence[Action]]:
        """What the wrapped strategy decides, its merges weighed; called only if it set a timer."""
        inner, actions = cast(WakingStrategy, self.strategy).on_wake(state.inner, number, now, view)
        return self._weigh(replace(state, inner=inner), actions, view)

    def _weigh(
        self, state: WeightedState, actions: Sequence[Action], view: View
    ) -> tuple[WeightedState, Sequence[Action]]:
        client_of, total, weighed = dict(state.reported), state.total_merges, []
        for action in actions:
            if isinstance(action, Drop):
                client_of.pop(action.ticket, None)
            elif isinstance(action, Merge):
                if action.combiner is not None:
                    raise ConfigError(
                        f'strategy is "participation_weighted" around a merge by "{action.combiner.name}", which has '
                        "its own weights; wrap a strategy that mixes models or adds deltas."
                    )
                factors = {}
                for ticket in action.tickets:
                    client = client_of.pop(ticket)
                    factors[ticket] = participation_factor(state.merges, total, client, len(view.clients))
                    count_merge(state.merges, client)
                    total += 1
                action = scale_weights(action, factors)
            weighed.append(action)
        return replace(state, total_merges=total, reported=tuple(client_of.items())), weighed
