"""Rounds of uniformly drawn clients with stale models: R*, R and R-conv, the theorems that know τ_max.

The server, for cohorts S_t of J clients and staleness τ_{t,c} ≤ min(t, τ):
x_{t+1} = x_t + (η/J) Σ_{c∈S_t} (y_{c,I} − x_{t−τ_{t,c}}), where y_{c,I} are I local steps from x_{t−τ_{t,c}}.
η = 1 averages the deltas, η = J adds them, J = 1 merges one by one. Throughout γ = η Σ λ_i, m = max(1, τ + 1/η), and
N1, N2 are those of `stale_noise`. All six take the same frozen `StaleSetting`.

The averaged bounds are on E F(x̄_T) − F*, an objective gap, for the weighted average x̄_T of the T + 1 models x_0 … x_T;
the *_last ones on E‖x_{T+1} − x*‖², a squared distance, of the model after them (take its root to compare distances).

The paper has none of these: its Theorem 1 holds without staleness only.

Assumptions of all three: S_t is a uniform J-subset, independent of the past; staleness is fixed in advance, or a
function of (t, c), or independent randomness; the step stays the same in all rounds and γ ≤ 1/(8 L m).

* R*: every client μ-strongly convex, every sampled loss convex and L-smooth (mini-batches: L is the expected
  smoothness); δ² is the mean over clients of the gradient variance at the optimum only.
* R: every client μ-strongly convex and L-smooth, δ² bounds the gradient variance everywhere (Assumption 2).
* R-conv: clients only convex, their mean μ-strongly convex; L bounds the smoothness of every mini-batch loss; epochs
  of reshuffled batches of equal size are allowed.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import Curve, as_curve
from asyncfed.theory.bounds.settings import StaleSetting
from asyncfed.theory.bounds.stale_steps import proved_step, stale_noise
from asyncfed.theory.bounds.transient import averaged_remaining, remaining

LAST = "T ≥ 0. Bounds x_{T+1}, the model after T + 1 rounds. A number, or an array for a curve."
AT_OPTIMUM = (
    "δ² ≥ 0, given squared. The mean over clients of E‖g − ∇F_c(x*)‖², the variance of one local step's gradient g at "
    "the optimum only; 0 if every step uses all rows."
)
EXPECTED = "L > 0 of every sampled loss; for fresh mini-batches their expected smoothness."
ANY_BATCH = "L > 0 of every mini-batch loss."
OBJECTIVE = "μ_F, 0 < μ_F ≤ L, of the objective F; single clients need only be convex."


@explain_arguments(smoothness=EXPECTED, gradient_variance=AT_OPTIMUM)
def r_star_averaged(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R*, weighted average of x_0 … x_T with weights (1 − μγ/2)^−(t+1):

    E F(x̄_T) − F* ≤ (μ/2) ‖x_0−x*‖² a/(1−a) + 3 γ N1 + 7.5 L γ² N2,  a = (1 − μγ/2)^(T+1).

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_star_averaged(run, last_index=2000):.6g}"
    '0.0236362'
    """
    return averaged_bound(setting, (1 / 2, 3, 7.5), last_index, check_step)


@explain_arguments(smoothness=EXPECTED, gradient_variance=AT_OPTIMUM, last_index=LAST)
def r_star_last(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R*, last iterate: E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ)(3 N1 + 7.5 L γ N2), a = (1 − μγ/2)^(T+1).

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_star_last(run, last_index=2000):.6g}"
    '0.0933202'
    """
    return last_bound(setting, (3, 7.5), last_index, check_step)


@explain_arguments()
def r_averaged(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R (the paper's Assumption 2), weighted average of x_0 … x_T as in R*:

    E F(x̄_T) − F* ≤ (7μ/9) ‖x_0−x*‖² a/(1−a) + (56/9) γ N1 + (50/3) L γ² N2,  a = (1 − μγ/2)^(T+1).

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_averaged(run, last_index=2000):.6g}"
    '0.0416726'
    """
    return averaged_bound(setting, (7 / 9, 56 / 9, 50 / 3), last_index, check_step)


@explain_arguments(last_index=LAST)
def r_last(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R, last iterate: E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ)(4 N1 + (75/7) L γ N2), a = (1 − μγ/2)^(T+1).

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_last(run, last_index=2000):.6g}"
    '0.105934'
    """
    return last_bound(setting, (4, 75 / 7), last_index, check_step)


@explain_arguments(smoothness=ANY_BATCH, strong_convexity=OBJECTIVE, gradient_variance=AT_OPTIMUM)
def r_conv_averaged(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R-conv, average of x_0 … x_T with the slower weights (1 − μ_F γ/4)^−(t+1), a' = (1 − μ_F γ/4)^(T+1):

    E F(x̄_T) − F* ≤ (19 μ_F/46) ‖x_0−x*‖² a'/(1−a') + (114/23) γ N1 + (165/23) L γ² N2.

    From R-conv's own recursion Σ w_t [d_t − d_{t+1} − (21/19) γ D_t + 3γ²N1 + (165/38) L γ³ N2] ≥ 0: half of γ D_t is
    spent on D_t ≥ (μ_F/2) d_t, which gives the contraction 1 − μ_F γ/4, and 21/19 − 1/2 = 23/38 of it remain.

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_conv_averaged(run, last_index=2000):.6g}"
    '0.113177'
    """
    return averaged_bound(setting, (19 / 46, 114 / 23, 165 / 23), last_index, check_step, slower=2)


@explain_arguments(smoothness=ANY_BATCH, strong_convexity=OBJECTIVE, gradient_variance=AT_OPTIMUM, last_index=LAST)
def r_conv_last(setting: StaleSetting, *, last_index: ArrayLike, check_step: bool = True) -> Curve:
    """R-conv, last iterate, a = (1 − μ_F γ/2)^(T+1):

    E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ_F)(3 N1 + (165/38) L γ N2).

    >>> run = StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                    num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3,
    ...                    start_distance_squared=3)
    >>> f"{r_conv_last(run, last_index=2000):.6g}"
    '0.086659'
    """
    return last_bound(setting, (3, 165 / 38), last_index, check_step)


def averaged_bound(
    setting: StaleSetting,
    constants: tuple[float, float, float],
    last_index: ArrayLike,
    check_step: bool,
    slower: int = 1,
) -> Curve:
    """k0·μ d0 a/(1−a) + k1·γ N1 + k2·L γ² N2 with a = (1 − μγ/(2·slower))^(T+1)."""
    convexity, step = setting.strong_convexity, proved_step(setting, check_step)
    left = averaged_remaining(
        contraction=convexity * step / (2 * slower),
        last_index=last_index,
        called=f"strong_convexity * server_step * sum of local rates / {2 * slower}",
        advice="Take a smaller learning_rate.",
    )
    start = constants[0] * convexity * setting.start_distance_squared
    return as_curve(start * left + noise_floor(setting, step, *constants[1:]))


def last_bound(setting: StaleSetting, constants: tuple[float, float], last_index: ArrayLike, check_step: bool) -> Curve:
    """a d0 + (2γ/μ)(k1 N1 + k2 L γ N2) with a = (1 − μγ/2)^(T+1)."""
    convexity, step = setting.strong_convexity, proved_step(setting, check_step)
    left = remaining(
        contraction=convexity * step / 2,
        last_index=last_index,
        called="strong_convexity * server_step * sum of local rates / 2",
        advice="Take a smaller learning_rate.",
    )
    return as_curve(left * setting.start_distance_squared + 2 / convexity * noise_floor(setting, step, *constants))


def noise_floor(setting: StaleSetting, step: float, first: float, second: float) -> float:
    """first·γ N1 + second·L γ² N2: what rounds do not shrink."""
    noise = stale_noise(setting)
    return step * (first * noise.first_order + second * setting.smoothness * step * noise.second_order)
