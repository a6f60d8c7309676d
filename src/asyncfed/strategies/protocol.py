"""What a strategy is, and all it may know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from asyncfed.core.pool import ClientPool
from asyncfed.core.random import Stream
from asyncfed.core.types import Action, Dispatch, Update, Work
from asyncfed.registry import declare_part


class View(Protocol):
    """All a strategy may know: no clock, no future, no arrays. A strategy only reads it.

    `outstanding` are the tickets that are out, by number, oldest first.
    """

    version: int
    round: int
    delay_spread: float | None

    @property
    def idle(self) -> ClientPool: ...
    @property
    def clients(self) -> ClientPool: ...

    in_flight: int
    outstanding: dict[int, Dispatch]

    @property
    def oldest_base(self) -> int | None: ...

    @property
    def total_examples(self) -> int: ...
    @property
    def rng(self) -> Stream: ...
    def num_examples(self, client: int) -> int: ...
    def load(self, client: int) -> int: ...


@runtime_checkable
class Strategy(Protocol):
    """A frozen value of hyper-parameters that decides. What it remembers of a run goes in and comes out of every hook.

    | hook | called when | to be answered with |
    |---|---|---|
    | `check(num_clients)` | before a run | nothing; raises `ConfigError` if the settings do not fit so many clients |
    | `start(view)` | the run begins | the first state and the first `Train` actions |
    | `observe(state, update, view)` | before `on_update`, only if the strategy `observes` | the state alone |
    | `on_update(state, update, view)` | a report has arrived | `Merge` or `Drop` it, now or later; `Train` again |
    | `on_lost(state, dispatch, view)` | a ticket will never be reported: it is lost, or was skipped | `Train` again |
    | `on_join(state, client, view)` | a client has come (back) | `Train`, if more can be at work now |
    | `on_leave(state, client, view)` | a client is gone; its tickets are lost next, one by one | mostly nothing |
    | `on_wake(state, number, now, view)` | the time of a `Wake` has come; only strategies that answer one have it | |

    Each hook but `check` and `observe` returns `(state, actions)`. The state is a `Record` of the type `state_type`, so
    that a run can be saved and resumed. `work` is what clients are asked to do, before a schedule sets its rate.
    """

    @property
    def work(self) -> Work: ...
    @property
    def state_type(self) -> type[Any]: ...
    def check(self, num_clients: int) -> None: ...
    def start(self, view: View) -> tuple[Any, Sequence[Action]]: ...
    def on_update(self, state: Any, update: Update, view: View) -> tuple[Any, Sequence[Action]]: ...
    def on_lost(self, state: Any, dispatch: Dispatch, view: View) -> tuple[Any, Sequence[Action]]: ...
    def on_join(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]: ...
    def on_leave(self, state: Any, client: int, view: View) -> tuple[Any, Sequence[Action]]: ...


class ObservingStrategy(Strategy, Protocol):
    """A strategy, part of which (its sampler) is shown every report before it is decided what becomes of it.

    Whether it `observes` is asked once, before the run.
    """

    @property
    def observes(self) -> bool: ...
    def observe(self, state: Any, update: Update, view: View) -> Any: ...


class WakingStrategy(Strategy, Protocol):
    """A strategy that answers with `Wake`."""

    def on_wake(self, state: Any, number: int, now: float, view: View) -> tuple[Any, Sequence[Action]]: ...


declare_part("strategy", Strategy)
