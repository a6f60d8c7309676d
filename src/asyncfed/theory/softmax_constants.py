"""The constants of multi-class logistic regression.

A row's loss log Σ_k exp(m_k) − m_y curves in its margins by diag(p) − p pᵀ, which is at most ½ (Böhning 1992). So a
client's loss is smooth with L_c = ½ λ_max(ZᵀZ / n_c) + l2, and strongly convex with what the penalty gives: l2, or 0 if
the biases are not penalised. A row's gradient is s_i ⊗ z_i + penalty · x, with slopes s_i = p_i − e_y of |s_i|² ≤ 2.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.softmax_losses import softmax_slopes
from asyncfed.problems.softmax_objective import SoftmaxObjective
from asyncfed.theory.batches import batch_smoothness, batch_strong_convexity, expected_smoothness_of
from asyncfed.theory.constants import Constants
from asyncfed.theory.curvature import client_curvature, objective_curvature
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.noise import batch_share

Array = NDArray[Any]

_NO_OPTIMUM = (
    "Without a penalty, or with biases that are not penalised and a class that does not occur, the softmax loss has no "
    "minimiser. Set model.l2 above 0."
)
_NOT_FOUND = "It is not computed for the softmax loss."


class _Model(Protocol):
    @property
    def l2(self) -> float: ...
    @property
    def penalize_bias(self) -> bool: ...
    @property
    def fit_bias(self) -> bool: ...


class _Problem(Protocol):
    @property
    def x(self) -> Array: ...
    @property
    def y(self) -> Array: ...
    @property
    def offsets(self) -> Array: ...
    @property
    def num_classes(self) -> int: ...
    @property
    def model(self) -> _Model: ...
    def optimum(self) -> Array | None: ...


def softmax_constants(problem: _Problem, batch_size: int | None = None, start: Any = None) -> Constants:
    """Every constant that is known of a softmax problem; `not_applicable` says why others are None.

    Args:
        problem: a `Softmax` problem.
        batch_size: b ≥ 1, rows of a mini-batch; None: single rows. A client with fewer uses all it has, without noise.
        start: x_0, p numbers; None: zeros.

    Returns:
        The constants.
    """
    model = problem.model
    # The Huber hinge of width 2 has the same largest curvature, ½, on the same rows: its bounds are these.
    alike = LinearData(
        problem.x,
        np.ones(len(problem.y)),
        problem.offsets,
        "huber_hinge",
        model.l2,
        model.penalize_bias,
        model.fit_bias,
        hinge_width=2.0,
    )
    rows = _Rows(problem, alike)
    x0 = np.zeros(len(rows.penalty)) if start is None else np.asarray(start, dtype=np.float64)
    best = problem.optimum()
    convex, smooth = client_curvature(alike, None, None)
    of_objective = objective_curvature(alike, None, None)
    reasons = dict.fromkeys(("phi2", "beta2", "ball_gradient_variance_max"), _NOT_FOUND)
    reasons |= {"largest_subgradient": "It is for the plain hinge.", "separable": _NOT_FOUND}
    share = batch_share(alike.sizes, batch_size)
    at_start = rows.variances(x0) * share
    at_best = None if best is None else rows.variances(best) * share
    slopes = None if best is None else np.linalg.norm(rows.client_gradients(best), axis=1)
    if best is None:
        names = ("optimum", "optimal_value", "start_distance", "optimum_heterogeneity", "largest_optimum_gradient")
        more = ("largest_sample_gradient", "gradient_variance_mean", "gradient_variance_max")
        reasons |= dict.fromkeys((*names, *more), _NO_OPTIMUM)
    return Constants(
        loss="softmax",
        num_clients=alike.num_clients,
        num_params=len(rows.penalty),
        num_rows=len(problem.y),
        batch_size=batch_size,
        smoothness=float(smooth.max()),
        strong_convexity=float(convex.min()),
        objective_smoothness=of_objective[1],
        objective_strong_convexity=of_objective[0],
        expected_smoothness=float(expected_smoothness_of(alike, batch_size, smooth).max()),
        batch_smoothness=float(batch_smoothness(alike, batch_size, smooth=smooth).max()),
        batch_strong_convexity=float(batch_strong_convexity(alike, batch_size, convex).min()),
        optimum=best,
        optimal_value=None if best is None else rows.objective.value_and_gradient(best)[0],
        start=x0,
        start_value=rows.objective.value_and_gradient(x0)[0],
        start_distance=None if best is None else float(np.linalg.norm(x0 - best)),
        optimum_heterogeneity=None if slopes is None else float(np.mean(slopes**2)),
        largest_optimum_gradient=None if slopes is None else float(slopes.max()),
        largest_sample_gradient=None if best is None else rows.largest_gradient(best),
        phi2=None,
        beta2=None,
        gradient_variance_mean=None if at_best is None else float(at_best.mean()),
        gradient_variance_max=None if at_best is None else float(at_best.max()),
        start_gradient_variance_mean=float(at_start.mean()),
        start_gradient_variance_max=float(at_start.max()),
        ball_radius=None,
        ball_gradient_variance_max=None,
        uniform_gradient_variance=float((rows.mean_of(2.0 * rows.norms) * share).max()),
        largest_subgradient=None,
        separable=None,
        not_applicable=reasons,
    )


class _Rows:
    """The rows' gradients, of which only lengths and sums are formed."""

    def __init__(self, problem: _Problem, alike: LinearData) -> None:
        self.penalty = np.tile(alike.penalty, problem.num_classes)
        self.objective = SoftmaxObjective(problem.x, problem.y, problem.offsets, problem.num_classes, self.penalty)
        self._z = np.ones((len(problem.y), alike.num_params))
        self._z[:, : problem.x.shape[1]] = problem.x
        self._labels = problem.y.astype(np.int64)
        self._offsets = problem.offsets
        self._classes = problem.num_classes
        self.norms: Array = np.einsum("ij,ij->i", self._z, self._z)

    def mean_of(self, values: Array) -> Array:
        """Each client's mean of its rows' values, (C,)."""
        means: Array = np.add.reduceat(values, self._offsets[:-1]) / np.diff(self._offsets)
        return means

    def client_gradients(self, x: Array) -> Array:
        """∇F_c(x), (C, p)."""
        gradients: Array = self._loss_gradients(self._slopes(x)) + self.penalty * x
        return gradients

    def variances(self, x: Array) -> Array:
        """σ_c²(x), (C,): of a single row's gradient."""
        slopes = self._slopes(x)
        means = self._loss_gradients(slopes)
        squares = self.mean_of((slopes**2).sum(axis=1) * self.norms)
        variances: Array = np.maximum(squares - np.einsum("ij,ij->i", means, means), 0.0)
        return variances

    def largest_gradient(self, x: Array) -> float:
        """max_i |s_i ⊗ z_i + penalty · x|."""
        slopes, pull = self._slopes(x), (self.penalty * x).reshape(self._classes, -1)
        crossed = np.einsum("ik,ik->i", slopes, self._z @ pull.T)
        squares = (slopes**2).sum(axis=1) * self.norms + 2.0 * crossed + float((pull**2).sum())
        return float(np.sqrt(max(0.0, float(squares.max()))))

    def _slopes(self, x: Array) -> Array:
        return softmax_slopes(self._z @ x.reshape(self._classes, -1).T, self._labels)

    def _loss_gradients(self, slopes: Array) -> Array:
        bounds = zip(self._offsets[:-1], self._offsets[1:], strict=True)
        return np.array([(slopes[a:b].T @ self._z[a:b]).ravel() / (b - a) for a, b in bounds])
