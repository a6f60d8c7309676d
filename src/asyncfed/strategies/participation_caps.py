"""Caps on how often a client takes part, kept by whoever gives out the tickets: what an account of privacy rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from math import inf
from typing import Any, Literal, TypeAlias, cast

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.record import Config, Record, replace, with_field_type
from asyncfed.core.types import Action, Cancel, Dispatch, Drop, Merge, Stop, Train, Update, Wake
from asyncfed.registry import register
from asyncfed.strategies.dispatch import Dispatching
from asyncfed.strategies.protocol import Strategy, View, WakingStrategy
from asyncfed.strategies.wrapping import Wrapper

Decision: TypeAlias = Callable[[Any, View], tuple[Any, Sequence[Action]]]
"""A hook of the wrapped strategy, to be asked with its state and a view."""

STUCK = 1_000_003
"""The number of the timer after which nobody is waited for any more."""


class CapsState(Record):
    """The wrapped strategy's state, and who took part when.

    Args:
        inner: the wrapped strategy's state.
        releases: merges so far.
        counts: by client, how often it took part.
        last: by client, the number of the last release it took part in, from 0; -1 if in none.
        held: tickets that were reported and neither merged nor dropped, and their clients.
        timers: how many timers of the wrapped strategy are set.
        waits: whether a timer is set for somebody to come.
    """

    inner: Any
    releases: int = 0
    counts: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    timers: int = 0
    waits: bool = False

    def count(self, client: int) -> int:
        """How often this client took part."""
        return self.counts[client] if client < len(self.counts) else 0

    def gap(self, client: int) -> float:
        """The releases since the last one this client took part in, without it; infinite if it took part in none."""
        last = self.last[client] if client < len(self.last) else -1
        return inf if last < 0 else self.releases - last - 1

    def with_participation(self, clients: Iterable[int], release: int) -> CapsState:
        """After these clients took part in a release."""
        counts, last = list(self.counts), list(self.last)
        for client in clients:
            counts.extend([0] * (client + 1 - len(counts)))
            last.extend([-1] * (client + 1 - len(last)))
            counts[client] += 1
            last[client] = release
        return replace(self, counts=tuple(counts), last=tuple(last))


class CappedView:
    """A view without the clients that may not take part: those at their cap are gone, others are not idle."""

    __slots__ = ("_view", "clients", "idle")

    def __init__(self, view: View, is_spent: Callable[[int], bool], is_eligible: Callable[[int], bool]) -> None:
        self._view = view
        self.clients: Any = ClientPool([client for client in view.clients if not is_spent(client)])
        self.idle: Any = ClientPool([client for client in view.idle if is_eligible(client)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


@register("strategy")
class ParticipationCaps(Wrapper, Config, tag_field="kind", tag="participation_caps"):
    """Any strategy, in which nobody gets a ticket that could lead beyond a cap.

    A merge is a release. A client gets a ticket only if, whatever arrives when,

    - it takes part at most once in a release: its last update was merged, dropped or lost, and lies in no buffer;
    - at least `separation` releases come between two in which it takes part;
    - it takes part in at most `participations` releases.

    Lost and dropped updates do not count, except with `counts = "tickets"`, where every ticket given out does: that is
    for updates which tell something to whoever receives them, whatever becomes of them. The run ends when nobody can
    take part any more. If only clients that are away could, they are waited for.

    Args:
        strategy: the strategy that is wrapped. It must draw among idle clients.
        num_clients: how many clients there are in all, 1 or more.
        participations: the cap for each client, 1 or more.
        separation: 0 or more; 0 where tickets count.
        releases: so many merges end the run, 1 or more; None for no limit.
        counts: "merges" or "tickets".
        wait: seconds to wait for clients that are away, above 0.

    >>> from asyncfed.strategies import FedBuff
    >>> ParticipationCaps(strategy=FedBuff(buffer_size=4), num_clients=6, participations=3, separation=1).check(6)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: a merge of 4 updates takes 4 clients, and with separation 1 those of 2 merges \
must differ: 8 clients are needed and there are 6. Make buffer_size or separation smaller.
    """

    strategy: Strategy
    num_clients: int
    participations: int
    separation: int = 0
    releases: int | None = None
    counts: Literal["merges", "tickets"] = "merges"
    wait: float = 3600.0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("num_clients", self.num_clients, 1),
            ("participations", self.participations, 1),
            ("separation", self.separation, 0),
            ("releases", 1 if self.releases is None else self.releases, 1),
        ):
            if value < least:
                raise ConfigError(f"strategy.{name} is {value}; it must be at least {least}.")
        if self.separation and self.counts == "tickets":
            raise ConfigError("strategy.separation is about merges; leave it out where tickets count.")
        if not 0 < self.wait < inf:
            raise ConfigError(f"strategy.wait is {self.wait}; it must be a positive number of seconds.")

    @property
    def state_type(self) -> type[Any]:
        """The state's class, with the wrapped strategy's filled in."""
        return with_field_type(CapsState, "inner", self.strategy.state_type)

    def check(self, num_clients: int) -> None:
        """Refuse samplers that queue, and merges for which there are not clients enough."""
        super().check(num_clients)
        if not isinstance(self.strategy, Dispatching):
            raise ConfigError(
                f"{type(self.strategy).__name__} does not say how it dispatches, so participation cannot be capped. "
                "Use a strategy such as fedbuff."
            )
        if self.sampler.queues:
            raise ConfigError(
                "strategy.sampler gives tickets to busy clients too, so that how often one takes part is known too "
                "late to be capped. Use the sampler uniform_idle."
            )
        merged, apart = self.dispatch.merged_at_once, self.separation + 1
        if self.counts == "merges" and merged * apart > num_clients:
            raise ConfigError(
                f"a merge of {merged} updates takes {merged} clients, and with separation {self.separation} those of "
                f"{apart} merges must differ: {merged * apart} clients are needed and there are {num_clients}. "
                "Make buffer_size or separation smaller."
            )

    # ---- the hooks: each is asked with a view of those who may take part -----------------------------------------

    def start(self, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's start."""
        return self._decide(CapsState(None), view, lambda inner, seen: self.strategy.start(seen))

    def on_update(self, state: CapsState, update: Update, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's; its client waits until the update is merged or dropped."""
        if self.counts == "merges":
            state = replace(state, held=(*state.held, (update.report.ticket, update.report.client)))
        return self._decide(state, view, lambda inner, seen: self.strategy.on_update(inner, update, seen))

    def on_lost(self, state: CapsState, dispatch: Dispatch, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's."""
        return self._decide(state, view, lambda inner, seen: self.strategy.on_lost(inner, dispatch, seen))

    def on_join(self, state: CapsState, client: int, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's."""
        return self._decide(state, view, lambda inner, seen: self.strategy.on_join(inner, client, seen))

    def on_leave(self, state: CapsState, client: int, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's; the client's tickets are lost next, so nothing is over yet."""
        return self._decide(state, view, lambda inner, seen: self.strategy.on_leave(inner, client, seen))

    def on_wake(self, state: CapsState, number: int, now: float, view: View) -> tuple[CapsState, Sequence[Action]]:
        """The wrapped strategy's, or the end of waiting for clients that are away."""
        if number != STUCK:
            waking, state = cast(WakingStrategy, self.strategy), replace(state, timers=state.timers - 1)
            return self._decide(state, view, lambda inner, seen: waking.on_wake(inner, number, now, seen))
        state = replace(state, waits=False)
        if self._goes_on(state, view, ()):
            return state, ()
        return state, [Stop(self._end(state))]

    # ---- who may take part ---------------------------------------------------------------------------------------

    def is_spent(self, state: CapsState, client: int) -> bool:
        """Whether the client has taken part as often as it may."""
        return state.count(client) >= self.participations

    def is_eligible(self, state: CapsState, client: int) -> bool:
        """Whether a ticket given to this client, if it has none, cannot lead beyond a cap."""
        if self.is_spent(state, client):
            return False
        if self.counts == "tickets":
            return True
        return state.gap(client) >= self.separation and all(client != held for _, held in state.held)

    def _decide(self, state: CapsState, view: View, ask: Decision) -> tuple[CapsState, Sequence[Action]]:
        """What the wrapped strategy decides for those who may take part.

        What it merges lets others take part again, whom it is to see when it draws: it is then asked again. It decides
        by what it is given alone, but may change its state in place: it is first given a copy.
        """
        word = view.rng.word
        inner, actions = ask(deepcopy(state.inner), self._seen(state, view))
        after = self._after(replace(state, inner=inner), actions, view)
        if after.releases > state.releases and self.counts == "merges":
            view.rng.word = word
            inner, again = ask(deepcopy(state.inner), self._seen(after, view))
            if _merges(again) == _merges(actions):
                actions, after = again, self._after(replace(state, inner=inner), again, view)
        self._check_tickets(after, actions, view)
        return self._with_end(after, list(actions), view)

    def _seen(self, state: CapsState, view: View) -> View:
        return cast(View, CappedView(view, partial(self.is_spent, state), partial(self.is_eligible, state)))

    def _after(self, state: CapsState, actions: Sequence[Action], view: View) -> CapsState:
        """The account after what was decided."""
        owner = dict(state.held)
        for action in actions:
            if isinstance(action, Merge):
                if self.counts == "merges":
                    clients = [owner.pop(ticket) for ticket in action.tickets]
                    state = state.with_participation(clients, state.releases)
                state = replace(state, releases=state.releases + 1)
            elif isinstance(action, Drop):
                owner.pop(action.ticket, None)
            elif isinstance(action, Wake):
                state = replace(state, timers=state.timers + 1)
            elif isinstance(action, Train) and self.counts == "tickets":
                state = state.with_participation([action.client], state.releases)
        return replace(state, held=tuple(owner.items()))

    def _check_tickets(self, state: CapsState, actions: Sequence[Action], view: View) -> None:
        """Refuse a strategy that gives a ticket to somebody it was not shown."""
        given = [action.client for action in actions if isinstance(action, Train)]
        freed = [view.outstanding[action.ticket].client for action in actions if isinstance(action, Cancel)]
        for client in given:
            if self.counts == "tickets":
                allowed = state.count(client) <= self.participations
            else:
                tickets = view.load(client) - freed.count(client) + given.count(client)
                allowed = tickets == 1 and self.is_eligible(state, client)
            if not allowed:
                raise ConfigError(
                    f"{type(self.strategy).__name__} gives a ticket to client {client}, which may not take part now, "
                    "so its participation cannot be capped. Use a strategy and a sampler that draw among idle clients."
                )

    # ---- the end -------------------------------------------------------------------------------------------------

    def _with_end(self, state: CapsState, actions: list[Action], view: View) -> tuple[CapsState, Sequence[Action]]:
        if self.releases is not None and state.releases >= self.releases:
            merges = [action for action in actions if not isinstance(action, Train)]  # a ticket would be for nothing
            return state, [*merges, Stop(f"privacy budget spent: all {self.releases} releases are made")]
        if self._goes_on(state, view, actions):
            return state, actions
        away = [c for c in range(self.num_clients) if c not in view.clients and self.is_eligible(state, c)]
        if not away:
            return state, [*actions, Stop(self._end(state))]
        if state.waits:
            return state, actions
        return replace(state, waits=True), [*actions, Wake(self.wait, STUCK)]

    def _goes_on(self, state: CapsState, view: View, actions: Sequence[Action]) -> bool:
        """Whether something is in flight, a timer is set, somebody who is here may take part, or nobody is here."""
        cancelled = sum(isinstance(action, Cancel) for action in actions)
        if view.in_flight - cancelled > 0 or any(isinstance(action, Train | Stop) for action in actions):
            return True
        if not len(view.clients) or any(self.is_eligible(state, client) for client in view.clients):
            return True
        return state.timers > 0

    def _end(self, state: CapsState) -> str:
        spent = sum(self.is_spent(state, client) for client in range(len(state.counts)))
        often = "once" if self.participations == 1 else f"{self.participations} times"
        words = f"privacy budget spent: {spent} of {self.num_clients} clients have taken part {often}"
        if state.held:
            words += f", {len(state.held)} wait in a buffer that nobody can fill"
        return f"{words}, and nobody else may take part now"


def _merges(actions: Sequence[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, Merge | Drop)]
