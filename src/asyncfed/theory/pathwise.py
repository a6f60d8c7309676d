"""Bounds along a recorded path: what P and M say about the very merges that happened, whatever their order and delays.

Every ticket's local work is a map G with three numbers, taken about the optimum x*:

    contraction q   |G(x) − G(y)| ≤ q |x − y|
    lipschitz K     |Δ(x) − Δ(y)| ≤ K |x − y|,    Δ = id − G
    offset b        |G(x*) − x*|

From these alone, V_t ≥ |x_t − x*| is carried from merge to merge. These are the recursions behind P and M of the theory
page with each ticket's own numbers, so mini-batches, rates that change and uneven clients are all covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e300
"""Where a bound is cut off: beyond it, it says nothing and would overflow."""


@dataclass(frozen=True, slots=True)
class TicketMap:
    """A ticket's map by its three numbers, all ≥ 0.

    Attributes:
        contraction: q ≥ 0: distances from x* shrink by it.
        lipschitz: K ≥ 0: how much the change depends on where it starts.
        offset: b ≥ 0, not squared: how far training from x* leads away from it.
    """

    contraction: float
    lipschitz: float
    offset: float


@dataclass(frozen=True, slots=True)
class Merged:
    """One ticket of a merge: its map, the version it started from, its weight, and its client (for latest-average).

    Attributes:
        ticket_map: its local training as a map.
        base_version: the version it started from.
        weight: what it counted in the merge.
        client: its client, for the latest-average rule.
    """

    ticket_map: TicketMap
    base_version: int
    weight: float
    client: int = 0


def along_models(
    start_distance: float, keeps: Sequence[float], merges: Sequence[Sequence[Merged]]
) -> NDArray[np.float64]:
    """M along a path: `x_{t+1} = keep x_t + Σ weight_i G_i(x_{base_i})`, keep + Σ weight = 1.

    V_{t+1} = keep V_t + Σ weight_i (q_i V_{base_i} + b_i). Answers V_0 … V_T.

    >>> step = Merged(TicketMap(0.5, 1.5, 0.1), base_version=0, weight=0.5)
    >>> along_models(2.0, [0.5], [[step]]).round(6).tolist()
    [2.0, 1.55]
    """
    bounds = [float(start_distance)]
    for keep, tickets in zip(keeps, merges, strict=True):
        arrived = sum(k.weight * _bound_reached(k, bounds) for k in tickets)
        bounds.append(min(keep * bounds[-1] + arrived, LARGEST))
    return np.array(bounds)


def along_deltas(start_distance: float, merges: Sequence[Sequence[Merged]]) -> NDArray[np.float64]:
    """P along a path: `x_{t+1} = x_t + Σ weight_i (G_i(x_{base_i}) − x_{base_i})`. Answers V_0 … V_T.

    V_{t+1} = |1 − W| V_t + Σ weight_i (q_i V_t + b_i + K_i D_i),   W = Σ weight_i,
    where D_i ≥ |x_t − x_{base_i}| is the sum of the moves since, each at most Σ weight_j (K_j V_{base_j} + b_j), and
    never more than V_t + V_{base_i}.

    >>> step = Merged(TicketMap(0.5, 0.5, 0.1), base_version=0, weight=0.5)
    >>> along_deltas(2.0, [[step], [step]]).round(6).tolist()
    [2.0, 1.55, 1.35]
    """
    bounds, travelled = [float(start_distance)], [0.0]
    for tickets in merges:
        now = bounds[-1]
        total = sum(k.weight for k in tickets)
        following, move = abs(1.0 - total) * now, 0.0
        for k in tickets:
            before = bounds[k.base_version]
            since = travelled[-1] - travelled[k.base_version] if travelled[-1] < LARGEST else LARGEST
            apart = min(since, now + before)
            local = k.ticket_map
            following += k.weight * (local.contraction * now + local.offset + local.lipschitz * apart)
            move += k.weight * (local.lipschitz * before + local.offset)
        bounds.append(min(following, LARGEST))
        travelled.append(min(travelled[-1] + move, LARGEST))
    return np.array(bounds)


def along_latest(
    start_distance: float, merges: Sequence[Sequence[Merged]], shares: Sequence[Sequence[float]]
) -> NDArray[np.float64]:
    """M along a path of the latest-average rule: x is the mean of every client's latest model, x_0 if there is none.

    v_c = (1 − weight) v_c + weight (q V_base + b) for the client that was merged;  V = V_0 + Σ share_c (v_c − V_0).
    `shares` are those of the tickets' clients in the mean, the same at every merge. Answers V_0 … V_T.

    >>> step = Merged(TicketMap(0.5, 1.5, 0.0), base_version=0, weight=1.0, client=3)
    >>> along_latest(2.0, [[step]], [[0.5]]).tolist()
    [2.0, 1.5]
    """
    start = float(start_distance)
    bounds = [start]
    slots: dict[int, float] = {}
    for tickets, of_tickets in zip(merges, shares, strict=True):
        mean = bounds[-1]
        for k, share in zip(tickets, of_tickets, strict=True):
            old = slots.get(k.client, start)
            slots[k.client] = new = (1.0 - k.weight) * old + k.weight * _bound_reached(k, bounds)
            mean += share * (new - old)
        bounds.append(min(max(mean, 0.0), LARGEST))
    return np.array(bounds)


def _bound_reached(merged: Merged, bounds: list[float]) -> float:
    return merged.ticket_map.contraction * bounds[merged.base_version] + merged.ticket_map.offset
