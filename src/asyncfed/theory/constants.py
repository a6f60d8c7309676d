"""All constants of a problem that the bounds need, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import DataError
from asyncfed.kernels.losses import HINGE
from asyncfed.theory.batches import batch_smoothness, batch_strong_convexity, expected_smoothness_of
from asyncfed.theory.curvature import client_curvature, objective_curvature
from asyncfed.theory.dissimilarity import client_gradient_norms, dissimilarity, largest_row_gradient
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.minimum import optimum, separable, why_no_optimum
from asyncfed.theory.noise import (
    gradient_variance,
    gradient_variance_everywhere,
    gradient_variance_on_ball,
    largest_subgradient,
)

Array = NDArray[Any]

_KINKED = "The hinge loss is not smooth: its gradient jumps, L = ∞. Use squared_hinge or huber_hinge."
_SEVERAL = "The hinge loss may have many minimisers, and its subgradients at them are a matter of choice."


@dataclass(frozen=True, eq=False)
class Constants:
    """What `constants` found. A number that does not apply is None, and `not_applicable` says why, by its name.

    Variances and smoothnesses of batches are those of `batch_size` rows (None: single rows), drawn afresh without
    replacement. "mean" and "largest" are over clients.

    Attributes:
        loss: the name of the loss, as in `kernels/losses.py`.
        num_clients: C, at least 1.
        num_params: p, features and the bias, if there is one.
        num_rows: n, rows of all clients together.
        batch_size: b, rows of a mini-batch; None for single rows.
        smoothness: L = max_c L_c > 0 (Assumption 1): loss per squared unit of the params, not squared itself.
        strong_convexity: μ = min_c μ_c ≥ 0 (Assumption 5), not squared; on the ball about x* if a `radius` was given.
        objective_smoothness: L_F of the mean over clients, not squared; exact for quadratic losses, else an upper
            bound.
        objective_strong_convexity: μ_F ≥ 0 of the mean over clients, not squared; exact for quadratic losses, else a
            lower bound.
        expected_smoothness: ℒ(b), not squared, the largest over clients.
        batch_smoothness: L of every mini-batch loss, not squared: none of any client is less smooth, short last
            batches included.
        batch_strong_convexity: μ ≥ 0 of every mini-batch loss, not squared: each of every client is at least this
            strongly convex.
        optimum: x*, (p,), the minimiser of the objective.
        optimal_value: F* = F(x*), a loss.
        start: x_0, (p,).
        start_value: F(x_0), a loss.
        start_distance: |x_0 − x*| ≥ 0, not squared.
        optimum_heterogeneity: ν*² = (1/C) Σ_c |∇F_c(x*)|² ≥ 0, squared (Assumption 4's β*²).
        largest_optimum_gradient: ν_max = max_c |∇F_c(x*)| ≥ 0, not squared.
        largest_sample_gradient: max_i |∇f_i(x*)| ≥ 0 over single rows, penalty included, not squared: no mini-batch's
            mean gradient at x* is longer.
        phi2: φ² ≥ 0 of Assumption 3, squared.
        beta2: β² ≥ 0 of Assumption 3, squared.
        gradient_variance_mean: the mean over clients of δ_c²(x*) ≥ 0, squared.
        gradient_variance_max: the largest over clients of δ_c²(x*) ≥ 0, squared.
        start_gradient_variance_mean: the mean over clients of δ_c²(x_0) ≥ 0, squared.
        start_gradient_variance_max: the largest over clients of δ_c²(x_0) ≥ 0, squared.
        ball_radius: R ≥ 0 of the ball about x*, as given, not squared.
        ball_gradient_variance_max: the largest over clients of δ_c² on that ball, squared.
        uniform_gradient_variance: the largest over clients of Assumption 2's δ_c², valid at every x, squared.
        largest_subgradient: G = max_i |z_i| ≥ 0, not squared, for the plain hinge.
        separable: whether some params classify every row correctly.
        not_applicable: why a number is None, by its name.
    """

    loss: str
    num_clients: int
    num_params: int
    num_rows: int
    batch_size: int | None
    smoothness: float | None
    strong_convexity: float
    objective_smoothness: float | None
    objective_strong_convexity: float
    expected_smoothness: float | None
    batch_smoothness: float | None
    batch_strong_convexity: float
    optimum: Array | None
    optimal_value: float | None
    start: Array
    start_value: float
    start_distance: float | None
    optimum_heterogeneity: float | None
    largest_optimum_gradient: float | None
    largest_sample_gradient: float | None
    phi2: float | None
    beta2: float | None
    gradient_variance_mean: float | None
    gradient_variance_max: float | None
    start_gradient_variance_mean: float
    start_gradient_variance_max: float
    ball_radius: float | None
    ball_gradient_variance_max: float | None
    uniform_gradient_variance: float | None
    largest_subgradient: float | None
    separable: bool | None
    not_applicable: Mapping[str, str]


def constants(
    data: LinearData,
    batch_size: int | None = None,
    start: Any = None,
    s: float = 1.0,
    radius: float | None = None,
) -> Constants:
    """Every constant of a problem.

    Args:
        data: the clients' rows and the loss.
        batch_size: b ≥ 1, rows of a mini-batch; None: single rows. A client with fewer uses all it has, without noise.
        start: x_0, p numbers; None: zeros.
        s: above 0, the trade between φ² and β², see `dissimilarity`.
        radius: R ≥ 0: also the largest noise, and for losses with labels the strong convexity, on the ball about x*.

    Returns:
        All constants; those that the problem does not have are None.

    >>> data = LinearData.of_clients([([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])])
    >>> found = constants(data)
    >>> round(found.smoothness, 5), round(found.strong_convexity, 6), round(found.optimum_heterogeneity, 5)
    (5.54647, 0.120197, 1.87111)
    >>> constants(LinearData.of_clients([([[1.0]], [1])], loss="hinge")).not_applicable["smoothness"]
    'The hinge loss is not smooth: its gradient jumps, L = ∞. Use squared_hinge or huber_hinge.'
    """
    x0 = np.zeros(data.num_params) if start is None else data.point(start, "start")
    best = optimum(data)
    start_variances = gradient_variance(data, x0, batch_size)
    reasons: dict[str, str] = {}
    return Constants(
        loss=data.loss,
        num_clients=data.num_clients,
        num_params=data.num_params,
        num_rows=len(data.y),
        batch_size=batch_size,
        start=x0,
        start_value=data.objective().value_and_gradient(x0)[0],
        start_gradient_variance_mean=float(start_variances.mean()),
        start_gradient_variance_max=float(start_variances.max()),
        ball_radius=radius,
        separable=_separable(data, reasons),
        largest_subgradient=_subgradient(data, reasons),
        uniform_gradient_variance=_everywhere(data, batch_size, reasons),
        **_curvatures(data, batch_size, radius, best, reasons),
        **_about_the_optimum(data, best, x0, reasons),
        **_noise_about_the_optimum(data, best, batch_size, radius, reasons),
        **_assumption_three(data, best, s, reasons),
        not_applicable=reasons,
    )


def _curvatures(
    data: LinearData, batch_size: int | None, radius: float | None, best: Array | None, reasons: dict[str, str]
) -> dict[str, Any]:
    on_ball = radius if best is not None else None
    if radius is not None and best is None:
        reasons["ball_radius"] = f"There is no ball about the optimum. {why_no_optimum(data)}"
    convex, smooth = client_curvature(data, on_ball, best)
    of_objective = objective_curvature(data, on_ball, best)
    found = {
        "smoothness": smooth.max(),
        "objective_smoothness": of_objective[1],
        "expected_smoothness": expected_smoothness_of(data, batch_size, smooth).max(),
        "batch_smoothness": batch_smoothness(data, batch_size, smooth=smooth).max(),
    }
    reasons.update({name: _KINKED for name in found if not data.is_smooth})
    return {
        **{name: float(value) if data.is_smooth else None for name, value in found.items()},
        "strong_convexity": float(convex.min()),
        "objective_strong_convexity": of_objective[0],
        "batch_strong_convexity": float(batch_strong_convexity(data, batch_size, convex).min()),
    }


def _about_the_optimum(data: LinearData, best: Array | None, start: Array, reasons: dict[str, str]) -> dict[str, Any]:
    places = ("optimum", "optimal_value", "start_distance")
    slopes = ("optimum_heterogeneity", "largest_optimum_gradient", "largest_sample_gradient")
    names = (*places, *slopes)
    found: dict[str, Any] = dict.fromkeys(names)
    if best is None:
        reasons.update(dict.fromkeys(names, why_no_optimum(data) or ""))
        return found
    found["optimum"] = best
    found["optimal_value"] = data.objective().value_and_gradient(best)[0]
    found["start_distance"] = float(np.linalg.norm(start - best))
    if data.loss_code == HINGE:
        reasons.update(dict.fromkeys(slopes, _SEVERAL))
        return found
    norms = client_gradient_norms(data, best)
    found["optimum_heterogeneity"] = float(np.mean(norms**2))
    found["largest_optimum_gradient"] = float(norms.max())
    found["largest_sample_gradient"] = largest_row_gradient(data, best)
    return found


def _noise_about_the_optimum(
    data: LinearData, best: Array | None, batch_size: int | None, radius: float | None, reasons: dict[str, str]
) -> dict[str, Any]:
    names = ("gradient_variance_mean", "gradient_variance_max")
    found: dict[str, Any] = dict.fromkeys((*names, "ball_gradient_variance_max"))
    if best is None or data.loss_code == HINGE:
        reasons.update(dict.fromkeys(names, why_no_optimum(data) or _SEVERAL))
    else:
        variances = gradient_variance(data, best, batch_size)
        found.update(zip(names, (float(variances.mean()), float(variances.max())), strict=True))
    if radius is None:
        reasons["ball_gradient_variance_max"] = "No radius of a ball was given."
    elif best is None:
        reasons["ball_gradient_variance_max"] = why_no_optimum(data) or ""
    else:
        found["ball_gradient_variance_max"] = float(gradient_variance_on_ball(data, best, radius, batch_size).max())
    return found


def _everywhere(data: LinearData, batch_size: int | None, reasons: dict[str, str]) -> float | None:
    largest = float(gradient_variance_everywhere(data, batch_size).max())
    if np.isfinite(largest):
        return largest
    reasons["uniform_gradient_variance"] = (
        f'With the loss "{data.loss}" the gradient noise grows without bound, so Assumption 2 holds on balls only.'
    )
    return None


def _assumption_three(data: LinearData, best: Array | None, s: float, reasons: dict[str, str]) -> dict[str, Any]:
    try:
        phi2, beta2 = dissimilarity(data, s, best)
    except DataError as reason:
        reasons.update(phi2=str(reason), beta2=str(reason))
        return {"phi2": None, "beta2": None}
    return {"phi2": phi2, "beta2": beta2}


def _subgradient(data: LinearData, reasons: dict[str, str]) -> float | None:
    if data.loss_code == HINGE and data.l2 == 0:
        return largest_subgradient(data)
    reasons["largest_subgradient"] = (
        "With a penalty the subgradients are not bounded." if data.loss_code == HINGE else "It is for the plain hinge."
    )
    return None


def _separable(data: LinearData, reasons: dict[str, str]) -> bool | None:
    """It matters where no penalty keeps the params finite."""
    if data.is_quadratic or data.l2 > 0:
        reasons["separable"] = "It matters for losses with labels and no penalty only."
        return None
    answer = separable(data)
    if answer is None:
        reasons["separable"] = "The linear programme that decides it is too large."
    return answer
