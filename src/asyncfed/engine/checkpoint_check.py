"""Whether a checkpoint can be continued from: types, clients and tickets, before a run relies on them.

Check sums find damage. What was changed on purpose may have check sums that fit, and would otherwise fail much later,
in the middle of a run, with an error about something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from asyncfed.core.record import Record, from_plain
from asyncfed.core.types import Dispatch

TIMERS = 2**62
"""Timers are on the clock of a simulation under this number plus their own: at the same moment, tickets come first."""


class _PoolState(Record):
    size: int
    places: list[int]
    clients: list[int]


class _ServerState(Record):
    version: int
    round: int
    updates: int
    stopped: str | None
    delay_spread: float | None
    in_flight: list[Dispatch]
    waiting: list[Dispatch]
    declared: list[tuple[int, int]]
    clients: list[int] | _PoolState | None
    idle: list[int] | _PoolState
    next_ticket: int
    shortest: float | None
    longest: float
    inputs: int
    state: Any
    memories: tuple[tuple[int, int], ...] = ()


class _LedgerState(Record):
    num_clients: int
    model_bytes: int
    energy: float
    bytes_down: int
    bytes_up: int
    lost: int
    dropped: int
    cumulative_spread: float
    cumulative_longest: float
    _merges: int
    _squares: int
    _shortest: float | None
    _longest: float
    _staleness_sum: int
    _staleness_max: int
    _merged: int
    clients: list[int]
    merges: list[int]
    skipped: int = 0


class _ExecutionState(Record):
    now: float
    diverged: bool
    server: _ServerState
    ledger: _LedgerState
    pending: dict[str, float | None]
    evaluated_at: int | None
    drops: int = 0


class _SimulationState(Record):
    heap: list[tuple[float, int, float, float, bool]]
    free_at: list[tuple[int, float]]
    finished: bool
    queued: tuple[int, ...] = ()
    kept: int = 0
    measured: tuple[tuple[int, dict[str, float] | None], ...] = ()


def check_execution_state(state: dict[str, Any], arrays: dict[str, np.ndarray], num_clients: int) -> None:
    """Refuse a checkpoint whose server, ledger and vectors do not belong together.

    Args:
        state: what the checkpoint says in numbers.
        arrays: its vectors.
        num_clients: how many clients the run has.

    Raises:
        ValueError: a value is of another type, or names a client or ticket that is not there.
    """
    known = from_plain(state, _ExecutionState)
    server, ledger = known.server, known.ledger
    out, waiting = ({d.ticket for d in dispatches} for dispatches in (server.in_flight, server.waiting))
    check_clients([d.client for d in (*server.in_flight, *server.waiting)], num_clients)
    check_pool(server.idle, num_clients)
    check_pool(server.clients or [], num_clients)
    check_clients([c for c, _ in server.declared], num_clients)
    check_clients(ledger.clients, num_clients)
    if ledger.num_clients != num_clients or ledger._squares < 0:
        raise ValueError(f"its account is of {ledger.num_clients} clients, but the run has {num_clients}")
    if min(server.version, server.round, server.updates, server.inputs, ledger.model_bytes, known.drops) < 0:
        raise ValueError("it counts fewer than no versions, rounds, updates, inputs, bytes or drops")
    if server.stopped is not None:
        out = set()  # a run that was halted in the middle of a decision did not send its last tickets
    if not out | waiting <= set(arrays["tickets"].tolist()) or max(out | waiting, default=-1) >= server.next_ticket:
        raise ValueError("its server waits for tickets that were not dispatched")
    if not waiting <= set(arrays["trained_tickets"].tolist()):
        raise ValueError("its server is about to merge models that are not there")


def check_simulation_state(state: dict[str, Any], num_clients: int, num_churn: int, wakes: bool) -> None:
    """Refuse a checkpoint whose clock cannot be that of this run; see `check_execution_state`.

    Args:
        state: what the checkpoint says in numbers.
        num_clients: how many clients the run has.
        num_churn: how many comings and goings are planned; they are on the clock under negative numbers.
        wakes: whether the strategy sets timers; they are on the clock under numbers from TIMERS on.

    Raises:
        ValueError: a value is of another type or out of its range.
    """
    known = from_plain(state, _SimulationState)
    if not wakes and any(ticket >= TIMERS for _, ticket, _, _, _ in known.heap):
        raise ValueError("its clock waits for a timer, but the strategy sets none")
    check_clients([*known.queued, *(client for client, _ in known.free_at)], num_clients)
    if any(ticket < -num_churn for _, ticket, _, _, _ in known.heap):
        raise ValueError(f"its clock waits for more than the {num_churn} comings and goings that are planned")
    if not all(time >= 0.0 for time, *_ in known.heap):
        raise ValueError("its clock waits for a moment that is no time")


def check_pool(pool: list[int] | _PoolState, num_clients: int) -> None:
    """Refuse a pool of clients that are not there, or that is no order of clients."""
    if isinstance(pool, list):  # as files of earlier versions have it
        check_clients(pool, num_clients)
        return
    check_clients([*pool.places, *pool.clients], num_clients)
    if not 0 <= pool.size <= num_clients or sorted(pool.places) != sorted(pool.clients):
        raise ValueError(f"its pool of {pool.size} clients is not in any order of {num_clients}")


def check_clients(clients: Iterable[int], num_clients: int) -> None:
    """Refuse numbers that are no client's."""
    strangers = [client for client in clients if not 0 <= client < num_clients]
    if strangers:
        raise ValueError(f"it names client {strangers[0]}, but the clients are 0 to {num_clients - 1}")
