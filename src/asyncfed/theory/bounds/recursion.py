"""Lemmas 5 and 6: how far one round moves the expected squared distance, and how far local models drift meanwhile."""

from __future__ import annotations

from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve, cohort, curvature, in_range, number
from asyncfed.theory.bounds.sampling import variance_without_replacement
from asyncfed.theory.bounds.step_condition import largest_paper_learning_rate


@explain_arguments(
    client_drift="ΣΣ E‖x_{c,i} − x‖² ≥ 0, squared, over the J clients and I local steps; which x, see above. A number "
    "or an array."
)
def round_recursion(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    distance_squared: ArrayLike,
    objective_gap: ArrayLike,
    client_drift: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """The right-hand side of Lemma 5 (eq. 21) for E‖x_{j+1} − x*‖²:

    (1 − μJIλ/2) d_j + 4JIλ²δ² + 4J²I²λ² (C−J)/(J(C−1)) ν*² − (2/3) JIλ D_j + (8/3) Lλ ΣΣ drift.

    As printed, `client_drift` is measured from the stale model, ‖x_{c,i} − x^(j−τ_c)‖², and the inequality is false
    with staleness. Corrected, it is from the server's current model, ‖x_{c,i} − x^(j)‖², and holds if the clients drawn
    are independent of x^(j). Same formula. `check_step` refuses λ > 1/(6LJI).

    >>> value = round_recursion(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...     num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2400, distance_squared=3,
    ...     objective_gap=.7, client_drift=.01)
    >>> f"{value:.6g}"
    '2.95065'
    """
    largest, smallest = curvature(smoothness, strong_convexity)
    cohort(num_clients, cohort_size)
    rate = paper_rate(learning_rate, largest, cohort_size, local_steps, check_step)
    step = rate * cohort_size * local_steps
    drawing = variance_without_replacement(
        variance=number("optimum_heterogeneity", optimum_heterogeneity, at_least=0),
        sample_size=cohort_size,
        population=num_clients,
    )
    noise = number("gradient_variance", gradient_variance, at_least=0) / (cohort_size * local_steps) + drawing
    kept = (1 - smallest * step / 2) * in_range("distance_squared", distance_squared, at_least=0)
    gained = 2 / 3 * step * in_range("objective_gap", objective_gap, at_least=0)
    drifted = 8 / 3 * largest * rate * in_range("client_drift", client_drift, at_least=0)
    return as_curve(kept + 4 * step**2 * noise - gained + drifted)


@explain_arguments()
def client_drift_bound(
    *,
    smoothness: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    cohort_size: int,
    local_steps: int,
    learning_rate: float,
    objective_gap: ArrayLike,
    check_step: bool = True,
) -> Curve:
    """E_j ≤ (9/4) J²I²λ²δ² + (9/4) J²I³λ²ν*² + 3 L J³I³λ² D_j (Lemma 6, eq. 28, as printed).

    True without staleness only: with it E_j contains J I ‖x^(j−τ) − x^(j)‖², which the right-hand side does not know.
    E_j = Σ_c Σ_i E‖x_{c,i} − x^(j)‖², a sum of J I squared distances. `check_step` refuses λ > 1/(6LJI).

    >>> value = client_drift_bound(smoothness=4, gradient_variance=2, optimum_heterogeneity=1.5, cohort_size=5,
    ...     local_steps=20, learning_rate=1 / 2400, objective_gap=.7)
    >>> f"{value:.6g}"
    '1.58333'
    """
    rate = paper_rate(learning_rate, smoothness, cohort_size, local_steps, check_step)
    steps, all_steps = local_steps, cohort_size * local_steps
    noise = number("gradient_variance", gradient_variance, at_least=0)
    spread = number("optimum_heterogeneity", optimum_heterogeneity, at_least=0)
    gap = in_range("objective_gap", objective_gap, at_least=0)
    return as_curve(rate**2 * all_steps**2 * (2.25 * noise + 2.25 * steps * spread + 3 * smoothness * all_steps * gap))


def paper_rate(learning_rate: float, smoothness: float, cohort_size: int, local_steps: int, check_step: bool) -> float:
    """λ, refused above 1/(6LJI) if `check_step`."""
    limit = largest_paper_learning_rate(smoothness=smoothness, cohort_size=cohort_size, local_steps=local_steps)
    rate = number("learning_rate", learning_rate, above=0)
    if check_step and rate > limit * (1 + 1e-12):
        raise ConfigError(
            f"learning_rate is {rate:.6g}, but the lemma needs at most 1/(6 L J I) = {limit:.6g}. "
            f"Divide it by {rate / limit:.4g}, or evaluate the formula alone with check_step=False."
        )
    return rate
