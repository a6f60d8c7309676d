"""What fast clients do to the answer: the point a run heads for when clients are not merged equally often.

Where each merge takes a small step along one client's update, the model follows

    F^p(x) = Σ_c p_c F_c(x),   p_c ∝ Σ over the merges of c of weight · length of the local step

instead of F = (1/C) Σ_c F_c, and settles at its minimiser x*_p however small the steps are. For μ-strongly convex F^p

    |x*_p − x*| ≤ |∇F^p(x*)| / μ.

Two clients ½(x ∓ 1)², the first three times as fast: p = (¾, ¼), x*_p = ½, F(x*_p) − F(x*) = ⅛.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.problems.newton import newton_minimum
from asyncfed.problems.objective import Objective
from asyncfed.problems.softmax_objective import SoftmaxObjective

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Bias:
    """How much each client counted, and how far that moves the optimum.

    `share` (C,) of the merges, `weight` (C,) of the pull on the model (both sum to 1); `optimum` is x*_p; `gap` is
    F(x*_p) − F(x*), `distance` |x*_p − x*| and `bound` its bound |∇F^p(x*)|/μ, infinite where μ = 0. Where `applies` is
    false the rule does not follow F^p, and `why` says what it does instead; the numbers then describe p alone.
    """

    share: Array
    weight: Array
    optimum: Array
    gap: float
    distance: float
    bound: float
    applies: bool
    why: str

    @property
    def representation(self) -> Array:
        """Pull relative to an equal one: 2 counts twice as much as it should, 0 was never merged."""
        return len(self.weight) * self.weight

    def most_over(self, count: int = 3) -> list[tuple[int, float]]:
        """The clients that count most, with their `representation`, most first."""
        return self._extremes(-self.representation, count)

    def most_under(self, count: int = 3) -> list[tuple[int, float]]:
        """The clients that count least, with their `representation`, least first."""
        return self._extremes(self.representation, count)

    def _extremes(self, keys: Array, count: int) -> list[tuple[int, float]]:
        order = np.argsort(keys, kind="stable")[:count]
        return [(int(client), float(self.representation[client])) for client in order]


def merge_shares(counts: ArrayLike) -> Array:
    """Each client's share of the merges.

    Args:
        counts: merges of each client, (C,), each 0 or more.

    >>> merge_shares([3, 1]).tolist()
    [0.75, 0.25]
    """
    return _normalise(np.asarray(counts, dtype=np.float64), "counts")


def effective_weights(
    clients: ArrayLike, weights: ArrayLike, num_clients: int, steps: ArrayLike | None = None
) -> Array:
    """p_c: what each client's merges weigh together, as a share of all.

    An update moves the model by about −weight · step · ∇F_c. There is one entry of `clients`, `weights` and `steps` for
    each merged update; its weight is that of its merge, damped, discounted and weighted by samples as it was.

    Args:
        clients: whose update, one number for each merged update.
        weights: what it counted in its merge.
        num_clients: C ≥ 1.
        steps: Σ of the learning rates of its local steps; None: all equal.

    >>> effective_weights([0, 0, 1], [0.5, 0.5, 0.5], num_clients=2, steps=[1.0, 1.0, 6.0]).tolist()
    [0.25, 0.75]
    """
    owners = np.asarray(clients, dtype=np.int64)
    pulls = np.asarray(weights, dtype=np.float64)
    if steps is not None:
        pulls = pulls * np.asarray(steps, dtype=np.float64)
    if owners.shape != pulls.shape:
        raise ConfigError(f"there are {owners.size} clients of merges but {pulls.size} weights; give one of each.")
    if owners.size and not 0 <= owners.min() <= owners.max() < num_clients:
        raise ConfigError(f"clients of merges must be 0 … {num_clients - 1}; one is {owners.min()} or {owners.max()}.")
    return _normalise(np.bincount(owners, weights=pulls, minlength=num_clients), "the weights of the merges")


def weighted_optimum(objective: Objective, weights: ArrayLike) -> Array:
    """x*_p, the minimiser of F^p; `objective` gives the data, the loss and the penalty.

    Args:
        objective: the data, the loss and the penalty.
        weights: p_c ≥ 0, (C,), summing to 1.
    """
    return newton_minimum(replace(objective, client_weights=_normalise(np.asarray(weights, np.float64), "weights")))


def bias_of_weights(
    objective: Objective | SoftmaxObjective,
    weight: ArrayLike,
    share: ArrayLike | None = None,
    strong_convexity: float = 0.0,
    applies: bool = True,
    why: str = "",
    optimum: ArrayLike | None = None,
) -> Bias:
    """Where these weights p lead, against equal ones. The losses must have a minimiser that Newton's method can find.

    Args:
        objective: the data, the loss and the penalty.
        weight: p_c ≥ 0, (C,).
        share: each client's share of the merges, (C,); only passed on; None: `weight`.
        strong_convexity: μ ≥ 0 of F^p, not squared.
        applies: whether the run's rule follows F^p.
        why: a sentence that says why, or why not.
        optimum: x*, (p,), if it is already known.
    """
    p = _normalise(np.asarray(weight, dtype=np.float64), "weight")
    fair, pulled = replace(objective, client_weights=None), replace(objective, client_weights=p)
    best = newton_minimum(fair) if optimum is None else np.asarray(optimum, dtype=np.float64)
    reached = newton_minimum(pulled)
    slope = float(np.linalg.norm(pulled.value_and_gradient(best)[1]))
    return Bias(
        share=p if share is None else np.asarray(share, dtype=np.float64),
        weight=p,
        optimum=reached,
        gap=max(0.0, fair.value_and_gradient(reached)[0] - fair.value_and_gradient(best)[0]),
        distance=float(np.linalg.norm(reached - best)),
        bound=slope / strong_convexity if strong_convexity > 0 else inf,
        applies=applies,
        why=why,
    )


def _normalise(amounts: Array, name: str) -> Array:
    if amounts.ndim != 1 or not np.isfinite(amounts).all() or (amounts < 0).any():
        raise ConfigError(f"{name} must be one finite number per client, zero or more.")
    total = float(amounts.sum())
    if total <= 0:
        raise ConfigError(f"{name} are all zero: nothing was merged, so there is nothing to share out.")
    return np.asarray(amounts / total)
