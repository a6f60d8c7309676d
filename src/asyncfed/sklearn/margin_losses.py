"""The losses of a model with K margins a row: K separate ones, or one of the softmax of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.losses import LEAST_SQUARES, LOGISTIC, loss_slopes, loss_values
from asyncfed.kernels.softmax_losses import softmax_slopes, softmax_values
from asyncfed.problems.objective import Objective
from asyncfed.problems.softmax_objective import SoftmaxObjective

Array = NDArray[Any]


class MarginLoss(Protocol):
    """A loss of the margins (n, K) = z · modelᵀ of rows; a model is (K, p), and its curvature blocks (B, q, q).

    Flattened, a model is B blocks of q numbers, and no curvature is between blocks.
    """

    @property
    def outputs(self) -> int:
        """K, 1 or more."""
        ...

    @property
    def is_quadratic(self) -> bool:
        """Whether the curvature is the same everywhere."""
        ...

    @property
    def steepest(self) -> float:
        """The largest second derivative of a row's loss in its margins."""
        ...

    def values(self, margins: Array, y: Array) -> Array:
        """The loss of each row, (n,)."""
        ...

    def slopes(self, margins: Array, y: Array) -> Array:
        """Its derivative by each margin, (n, K)."""
        ...

    def curvature(self, z: Array, y: Array, model: Array) -> Array:
        """The Hessian of the mean over rows, (B, q, q)."""
        ...

    def largest_curvature(self, z: Array) -> Array:
        """A matrix of that shape that no Hessian exceeds."""
        ...


@dataclass(frozen=True)
class SeparateLosses:
    """K sums of one loss of `kernels/losses.py`, each with a margin and a target of its own: y is (n, K)."""

    code: int
    outputs: int = 1

    @property
    def is_quadratic(self) -> bool:
        """Of the losses used here, least squares."""
        return self.code == LEAST_SQUARES

    @property
    def steepest(self) -> float:
        """¼ for the logistic loss, 1 for the others used here."""
        return 0.25 if self.code == LOGISTIC else 1.0

    def values(self, margins: Array, y: Array) -> Array:
        """The loss of each row, summed over its margins."""
        total: Array = loss_values(self.code, margins, y).sum(axis=1)
        return total

    def slopes(self, margins: Array, y: Array) -> Array:
        """Its derivative by each margin."""
        return loss_slopes(self.code, margins, y)

    def curvature(self, z: Array, y: Array, model: Array) -> Array:
        """K blocks (p, p)."""
        offsets, penalty = np.array([0, len(z)]), np.zeros(z.shape[1])
        pairs = zip(y.T, model, strict=True)
        return np.array([Objective(z, own, offsets, self.code, penalty).hessian(params) for own, params in pairs])

    def largest_curvature(self, z: Array) -> Array:
        """The mean of z zᵀ, times the steepest."""
        return np.repeat((self.steepest / len(z) * (z.T @ z))[None], self.outputs, axis=0)


@dataclass(frozen=True)
class SoftmaxLoss:
    """log Σ_k exp(m_k) − m_y: y is (n,) with classes 0 … K−1."""

    outputs: int
    is_quadratic: bool = False
    steepest: float = 0.5

    def values(self, margins: Array, y: Array) -> Array:
        """The loss of each row."""
        return softmax_values(margins, y)

    def slopes(self, margins: Array, y: Array) -> Array:
        """Its derivative by each margin."""
        return softmax_slopes(margins, y)

    def curvature(self, z: Array, y: Array, model: Array) -> Array:
        """One block (K p, K p)."""
        objective = SoftmaxObjective(z, y, np.array([0, len(z)]), self.outputs, np.zeros(model.size))
        return objective.hessian(model.ravel())[None]

    def largest_curvature(self, z: Array) -> Array:
        """½ (I − 1 1ᵀ / K) ⊗ the mean of z zᵀ: Böhning, "Multinomial logistic regression algorithm", 1992."""
        between = self.steepest * (np.eye(self.outputs) - 1.0 / self.outputs)
        return np.kron(between, z.T @ z / len(z))[None]
