"""What is known of each client, as columns of numbers: counts, times, shares, and what it is doing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_table import CANCELLED, DROPPED, IN_FLIGHT, MERGED, WAITING, WAS_LOST, WAS_SKIPPED
from asyncfed.store.loss_reasons import SET_ASIDE as SET_ASIDE_REASON
from asyncfed.store.schema import JOIN, LEAVE, REFUSED

STATES = ("working", "idle", "silent", "left", "set aside", "never heard")
WORKING, IDLE, SILENT, LEFT, SET_ASIDE, NEVER_HEARD = range(len(STATES))

SILENT_AFTER = 3.0
"""A ticket that is out for so many times the longest that its client, or the median client, ever took is overdue."""

ORDERS = ("silent", "slowest", "merged", "weight", "refused", "number")


class ClientNumbers(NamedTuple):
    """A value for each client. Times are seconds of the run's clock; NaN where there is none."""

    tickets: np.ndarray
    in_flight: np.ndarray
    merged: np.ndarray
    lost: np.ndarray
    refused: np.ndarray
    dropped: np.ndarray
    skipped: np.ndarray
    cancelled: np.ndarray
    waiting: np.ndarray
    mean_duration: np.ndarray
    last_heard: np.ndarray
    weight_share: np.ndarray
    merge_share: np.ndarray
    energy: np.ndarray
    state: np.ndarray
    since: np.ndarray

    def order(self, by: str) -> np.ndarray:
        """The clients' numbers, those first that somebody who orders by this looks for; ties by number."""
        if by == "silent":
            rank = np.array([3, 4, 1, 2, 0, 1.5])[self.state]
            return np.lexsort((self.since, rank))
        keys = {
            "slowest": -np.nan_to_num(self.mean_duration, nan=-1.0),
            "merged": -self.merged,
            "weight": -self.weight_share,
            "refused": -self.refused,
            "number": np.arange(len(self.state)),
        }
        return np.argsort(keys[by], kind="stable")


def client_numbers(view: RunView) -> ClientNumbers:
    """The numbers of all clients, computed once for as long as nothing is new."""
    return view.computed("clients", lambda: _compute(view))


def _compute(view: RunView) -> ClientNumbers:
    table, count = view.tickets, view.num_clients
    client, outcome = table["client"], table["outcome"]
    sent, ended, duration = table["sent"], table["ended"], table["duration"]

    def counted(code: int) -> np.ndarray:
        return np.bincount(client[outcome == code], minlength=count)

    def summed(values: np.ndarray, where: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.bincount(client[where], values[where], minlength=count)

    answered = np.isfinite(duration) & (outcome != WAS_LOST) & (outcome != CANCELLED) & (outcome != IN_FLIGHT)
    answers = np.bincount(client[answered], minlength=count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_duration = summed(duration, answered) / answers
    last_heard = np.full(count, np.nan)
    np.fmax.at(last_heard, client[answered], ended[answered])
    merged, weight = counted(MERGED), summed(table["weight"])
    refused = np.zeros(count, np.int64)
    for event in view.tickets.client_events:
        if event.kind == REFUSED and 0 <= event.client < count:
            refused[event.client] += 1
    out = outcome == IN_FLIGHT
    waits_since = np.full(count, np.nan)
    np.fmin.at(waits_since, client[out], sent[out])
    state, since = _states(view, waits_since, last_heard, answers, _patience(view, answered, answers))
    return ClientNumbers(
        tickets=np.bincount(client, minlength=count),
        in_flight=counted(IN_FLIGHT),
        merged=merged,
        lost=counted(WAS_LOST),
        refused=refused,
        dropped=counted(DROPPED),
        skipped=counted(WAS_SKIPPED),
        cancelled=counted(CANCELLED),
        waiting=counted(WAITING),
        mean_duration=mean_duration,
        last_heard=last_heard,
        weight_share=weight / max(weight.sum(), np.finfo(float).tiny),
        merge_share=merged / max(merged.sum(), 1),
        energy=summed(table["energy"]),
        state=state,
        since=since,
    )


def _patience(view: RunView, answered: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Seconds after which a ticket without an answer makes its client silent."""
    table, count = view.tickets, view.num_clients
    longest = np.zeros(count)
    took = table["ended"] - table["sent"]
    np.fmax.at(longest, table["client"][answered], took[answered])
    known = longest[answers > 0]
    usual = float(np.median(known)) if len(known) else np.inf
    return SILENT_AFTER * np.where(answers > 0, np.maximum(longest, usual), usual)


def _states(view: RunView, waits_since: Any, last_heard: Any, answers: Any, patience: Any) -> tuple[Any, Any]:
    now = view.now
    overdue = now - waits_since > patience
    state = np.where(np.isnan(waits_since), IDLE, np.where(overdue, SILENT, WORKING))
    since = np.where(np.isnan(waits_since), last_heard, waits_since)
    since = np.where(state == SILENT, np.fmax(last_heard, 0.0), since)
    never = (answers == 0) & (np.isnan(waits_since) | overdue)
    state[never], since[never] = NEVER_HEARD, np.nan
    _count_losses_in_a_row(view, state, since, last_heard)
    absent = view.header.get("live", {}).get("absent", [])
    for client in absent if isinstance(absent, list) else []:
        if isinstance(client, int) and 0 <= client < view.num_clients:
            state[client], since[client] = NEVER_HEARD, np.nan
    gone: dict[int, tuple[int, float] | None] = {}
    for event in view.tickets.client_events:
        if event.kind == LEAVE:
            is_aside = view.text(event.detail) == SET_ASIDE_REASON
            gone[event.client] = (SET_ASIDE if is_aside else LEFT, event.time)
        elif event.kind == JOIN:
            gone[event.client] = None
    for client, left in gone.items():
        if 0 <= client < view.num_clients:
            if left is not None:
                state[client], since[client] = left
            elif state[client] == NEVER_HEARD and not answers[client]:
                state[client] = IDLE if np.isnan(waits_since[client]) else WORKING
    return state, since


def _count_losses_in_a_row(view: RunView, state: Any, since: Any, last_heard: Any) -> None:
    """A client without a ticket whose last ticket was lost is silent since it was last heard."""
    table = view.tickets
    lost = np.flatnonzero(table["outcome"] == WAS_LOST)
    last_lost = np.full(view.num_clients, -np.inf)
    np.fmax.at(last_lost, table["client"][lost], table["ended"][lost])
    silent = (state == IDLE) & (last_lost > np.nan_to_num(last_heard, nan=-np.inf))
    state[silent] = SILENT
    since[silent] = np.fmax(last_heard[silent], 0.0)
