"""Each ticket's local training as a map: how it shrinks distances, and how far it moves the optimum.

On a quadratic loss the map is affine, so its matrix is found by training from the optimum and from one unit beside it
in every direction: the numbers are exact, mini-batches, short batches, rates and all. On another smooth loss they
follow from the curvature of what is stepped on, and only the offset is found by training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.engine.trajectory import MergedTicket
from asyncfed.problems.protocol import Jobs, Problem
from asyncfed.problems.step_rates import step_rates
from asyncfed.theory.pathwise import TicketMap

AT_ONCE = 4096
"""Trainings in one call."""


def exact_maps(problem: Problem, tickets: Sequence[MergedTicket], optimum: np.ndarray, threads: int) -> list[TicketMap]:
    """The maps of a quadratic problem, by num_params + 1 trainings a ticket.

    Trained in the problem's own precision; the directions are a unit long.
    """
    width = problem.num_params
    points = np.vstack([optimum, optimum + np.eye(width)]).astype(problem.dtype)
    maps: list[TicketMap] = []
    group = max(1, AT_ONCE // len(points))
    for first in range(0, len(tickets), group):
        some = tickets[first : first + group]
        trained = _train_from(problem, some, points, threads)
        matrices = np.swapaxes(trained[:, 1:] - trained[:, :1], 1, 2)
        shrinks = np.linalg.norm(matrices, 2, axis=(1, 2))
        stretches = np.linalg.norm(np.eye(width) - matrices, 2, axis=(1, 2))
        offsets = np.linalg.norm(trained[:, 0] - optimum, axis=1)
        maps += [TicketMap(*map(float, numbers)) for numbers in zip(shrinks, stretches, offsets, strict=True)]
    return maps


def bounded_maps(
    problem: Problem,
    tickets: Sequence[MergedTicket],
    optimum: np.ndarray,
    curvature: tuple[float, float],
    threads: int,
) -> list[TicketMap] | None:
    """Bounds on the maps from (L, μ) of every loss a step is made on; None if some rate exceeds 2/(L + μ)."""
    smoothness, convexity = curvature
    maps: list[TicketMap] = []
    for first in range(0, len(tickets), AT_ONCE):
        some = tickets[first : first + AT_ONCE]
        offsets = np.linalg.norm(
            _train_from(problem, some, optimum[None].astype(problem.dtype), threads)[:, 0] - optimum, axis=1
        )
        for ticket, offset in zip(some, offsets, strict=True):
            rates = step_rates(ticket.work, int(problem.num_examples[ticket.client]))
            if rates.max() > 2.0 / (smoothness + convexity):
                return None
            shrink = float(np.prod(1.0 - rates * convexity))
            stretch = smoothness * float(rates.sum()) if not convexity else smoothness * (1.0 - shrink) / convexity
            maps.append(TicketMap(shrink, min(stretch, 1.0 + shrink), float(offset)))
    return maps


def _train_from(problem: Problem, tickets: Sequence[MergedTicket], points: np.ndarray, threads: int) -> np.ndarray:
    """Every ticket's work done from every point: (tickets, points, params), in double precision."""
    count = len(points)
    jobs = Jobs(
        np.tile(points, (len(tickets), 1)),
        [k.client for k in tickets for _ in range(count)],
        [k.work for k in tickets for _ in range(count)],
        [k.key for k in tickets for _ in range(count)],
    )
    trained = problem.local_train_many(jobs, threads)
    return trained.astype(np.float64).reshape(len(tickets), count, -1)
