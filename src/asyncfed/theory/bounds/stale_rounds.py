"""Rounds of uniformly drawn clients with stale models: R*, R and R-conv, the theorems that know τ_max.

The server, for cohorts S_t of J clients and staleness τ_{t,c} ≤ min(t, τ):
x_{t+1} = x_t + (η/J) Σ_{c∈S_t} (y_{c,I} − x_{t−τ_{t,c}}), where y_{c,I} are I local steps from x_{t−τ_{t,c}}.
η = 1 averages the deltas, η = J adds them, J = 1 merges one by one. Throughout γ = η Σ λ_i, m = max(1, τ + 1/η).

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

from typing import NamedTuple, NotRequired, TypedDict, Unpack

from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.arguments import Curve, as_curve, cohort, count, curvature, number
from asyncfed.theory.bounds.local_rates import local_rates
from asyncfed.theory.bounds.transient import averaged_remaining, remaining


class StaleRun(TypedDict):
    """The keywords that describe a run to R*, R and R-conv; `stale_setting` says what each may be."""

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: ArrayLike
    staleness: int
    server_step: NotRequired[float]


class StaleNoise(NamedTuple):
    """N1, the noise of one server step, and N2, the noise in how far a stale local model is from the server's."""

    first_order: float
    second_order: float


def delay_factor(*, staleness: int, server_step: float = 1.0) -> float:
    """m = max(1, τ + 1/η): how many steps old a merged gradient is, at most. τ ≥ 0, η > 0.

    >>> delay_factor(staleness=3, server_step=1.0)
    4.0
    """
    return max(1.0, count("staleness", staleness) + 1 / number("server_step", server_step, above=0))


def effective_step(*, learning_rate: ArrayLike, local_steps: int, server_step: float = 1.0) -> float:
    """γ = η Σ λ_i (= η λ I): how far one round moves the server per unit of gradient. λ > 0, I ≥ 1, η > 0.

    >>> effective_step(learning_rate=1 / 2560, local_steps=20)
    0.0078125
    """
    return number("server_step", server_step, above=0) * local_rates(learning_rate, local_steps).total


def stale_noise(
    *,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    learning_rate: ArrayLike,
    local_steps: int,
    staleness: int,
    server_step: float = 1.0,
) -> StaleNoise:
    """N1 = δ²/(J I) + (C−J) ν*²/(J (C−1)) and N2 = τ N1 + (δ²/I + ν*²)/η²; with C = 1 the middle part is 0.

    With unequal local rates δ²/I reads δ² Σλ_i²/(Σλ_i)². δ², ν*² ≥ 0; 1 ≤ J ≤ C; I ≥ 1; τ ≥ 0; η > 0.

    >>> noise = stale_noise(gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10, cohort_size=5,
    ...                     learning_rate=1 / 2560, local_steps=20, staleness=3)
    >>> f"{noise.first_order:.6g} {noise.second_order:.6g}"
    '0.186667 2.16'
    """
    clients, size = cohort(num_clients, cohort_size)
    delay, step = count("staleness", staleness), number("server_step", server_step, above=0)
    spread = number("optimum_heterogeneity", optimum_heterogeneity, at_least=0)
    noise = number("gradient_variance", gradient_variance, at_least=0)
    of_client = noise / local_rates(learning_rate, local_steps).equal_steps
    of_drawing = (clients - size) / (size * (clients - 1)) * spread if clients > 1 else 0.0
    first = of_client / size + of_drawing
    return StaleNoise(first, delay * first + (of_client + spread) / step**2)


def largest_effective_step(*, smoothness: float, staleness: int, server_step: float = 1.0) -> float:
    """γ_max = 1/(8 L m), the largest γ for which R*, R and R-conv are proved. L > 0, τ ≥ 0, η > 0.

    >>> largest_effective_step(smoothness=4, staleness=3)
    0.0078125
    """
    return 1 / (
        8 * number("smoothness", smoothness, above=0) * delay_factor(staleness=staleness, server_step=server_step)
    )


def largest_stale_learning_rate(
    *, smoothness: float, staleness: int, local_steps: int, server_step: float = 1.0, shape: ArrayLike = 1.0
) -> float:
    """The largest local rate λ with η λ Σ shape_i ≤ 1/(8 L m).

    `shape`: how the I local rates relate to λ, one number or I of them (1: all equal to λ).

    >>> largest_stale_learning_rate(smoothness=15.846, staleness=5, local_steps=350)  # doctest: +ELLIPSIS
    3.756...e-06
    """
    limit = largest_effective_step(smoothness=smoothness, staleness=staleness, server_step=server_step)
    return limit / effective_step(learning_rate=shape, local_steps=local_steps, server_step=server_step)


def r_star_averaged(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R*, weighted average of x_0 … x_T with weights (1 − μγ/2)^−(t+1):

    E F(x̄_T) − F* ≤ (μ/2) ‖x_0−x*‖² a/(1−a) + 3 γ N1 + 7.5 L γ² N2,  a = (1 − μγ/2)^(T+1).

    `run`: the keywords of `stale_setting`. `last_index` T ≥ 0, a number or an array. With `check_step=False` the
    formula is evaluated also where γ > 1/(8 L m), and then proves nothing.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_star_averaged(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.0236362'
    """
    return averaged_bound(
        stale_setting(check_step=check_step, **run), (1 / 2, 3, 7.5), start_distance_squared, last_index
    )


def r_star_last(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R*, last iterate: E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ)(3 N1 + 7.5 L γ N2). Arguments as `r_star_averaged`.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_star_last(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.0933202'
    """
    return last_bound(stale_setting(check_step=check_step, **run), (3, 7.5), start_distance_squared, last_index)


def r_averaged(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R (the paper's Assumption 2), weighted average as in R*:

    E F(x̄_T) − F* ≤ (7μ/9) ‖x_0−x*‖² a/(1−a) + (56/9) γ N1 + (50/3) L γ² N2. Arguments as `r_star_averaged`.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_averaged(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.0416726'
    """
    setting = stale_setting(check_step=check_step, **run)
    return averaged_bound(setting, (7 / 9, 56 / 9, 50 / 3), start_distance_squared, last_index)


def r_last(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R, last iterate: E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ)(4 N1 + (75/7) L γ N2). Arguments as `r_star_averaged`.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_last(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.105934'
    """
    return last_bound(stale_setting(check_step=check_step, **run), (4, 75 / 7), start_distance_squared, last_index)


def r_conv_last(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R-conv, last iterate: E‖x_{T+1} − x*‖² ≤ a ‖x_0−x*‖² + (2γ/μ_F)(3 N1 + (165/38) L γ N2), a = (1 − μ_F γ/2)^(T+1).

    `strong_convexity`: of the objective F; `smoothness`: of any mini-batch loss. Others as `r_star_averaged`.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_conv_last(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.086659'
    """
    return last_bound(stale_setting(check_step=check_step, **run), (3, 165 / 38), start_distance_squared, last_index)


def r_conv_averaged(
    *, last_index: ArrayLike, start_distance_squared: float, check_step: bool = True, **run: Unpack[StaleRun]
) -> Curve:
    """R-conv, average of x_0 … x_T with the slower weights (1 − μ_F γ/4)^−(t+1), a' = (1 − μ_F γ/4)^(T+1):

    E F(x̄_T) − F* ≤ (19 μ_F/46) ‖x_0−x*‖² a'/(1−a') + (114/23) γ N1 + (165/23) L γ² N2.

    From R-conv's own recursion Σ w_t [d_t − d_{t+1} − (21/19) γ D_t + 3γ²N1 + (165/38) L γ³ N2] ≥ 0: half of γ D_t is
    spent on D_t ≥ (μ_F/2) d_t, which gives the contraction 1 − μ_F γ/4, and 21/19 − 1/2 = 23/38 of it remain.
    Arguments as `r_conv_last`.

    >>> run = dict(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...            cohort_size=5, local_steps=20, learning_rate=1 / 2560, staleness=3, server_step=1)
    >>> f"{r_conv_averaged(**run, start_distance_squared=3, last_index=2000):.6g}"
    '0.113177'
    """
    setting = stale_setting(check_step=check_step, **run)
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    forgotten = averaged_remaining(contraction=setting.convexity * setting.step / 4, last_index=last_index)
    weight = 19 / 46 * setting.convexity * start
    return as_curve(weight * forgotten + setting.floor(114 / 23, 165 / 23))


class StaleSetting(NamedTuple):
    """The numbers of a run as R*, R and R-conv use them: L, μ, γ and N1, N2."""

    smoothness: float
    convexity: float
    step: float
    noise: StaleNoise

    def floor(self, first: float, second: float) -> float:
        """first·γ N1 + second·L γ² N2."""
        curved = second * self.smoothness * self.step * self.noise.second_order
        return self.step * (first * self.noise.first_order + curved)


def stale_setting(
    *,
    smoothness: float,
    strong_convexity: float,
    gradient_variance: float,
    optimum_heterogeneity: float,
    num_clients: int,
    cohort_size: int,
    local_steps: int,
    learning_rate: ArrayLike,
    staleness: int,
    server_step: float = 1.0,
    check_step: bool = True,
) -> StaleSetting:
    """The run in the bounds' own numbers; refuses γ > 1/(8 L m) unless told not to check.

    0 < μ ≤ L; δ², ν*² ≥ 0; 1 ≤ J ≤ C; I ≥ 1; λ > 0, one number or I of them; τ ≥ 0; η > 0.
    """
    largest, smallest = curvature(smoothness, strong_convexity)
    step = effective_step(learning_rate=learning_rate, local_steps=local_steps, server_step=server_step)
    limit = largest_effective_step(smoothness=largest, staleness=staleness, server_step=server_step)
    if check_step and step > limit * (1 + 1e-12):
        raise ConfigError(
            f"The effective step η·λ·I is {step:.6g}, but the bound is proved up to 1/(8 L m) = {limit:.6g} only. "
            f"Divide learning_rate by {step / limit:.4g}, or pass check_step=False to see the formula's number."
        )
    noise = stale_noise(
        gradient_variance=gradient_variance,
        optimum_heterogeneity=optimum_heterogeneity,
        num_clients=num_clients,
        cohort_size=cohort_size,
        learning_rate=learning_rate,
        local_steps=local_steps,
        staleness=staleness,
        server_step=server_step,
    )
    return StaleSetting(largest, smallest, step, noise)


def averaged_bound(
    setting: StaleSetting, constants: tuple[float, float, float], start_distance_squared: float, last_index: ArrayLike
) -> Curve:
    """k0·μ d0 a/(1−a) + k1·γ N1 + k2·L γ² N2 with a = (1 − μγ/2)^(T+1)."""
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    forgotten = averaged_remaining(contraction=setting.convexity * setting.step / 2, last_index=last_index)
    return as_curve(constants[0] * setting.convexity * start * forgotten + setting.floor(*constants[1:]))


def last_bound(
    setting: StaleSetting, constants: tuple[float, float], start_distance_squared: float, last_index: ArrayLike
) -> Curve:
    """a d0 + (2γ/μ)(k1 N1 + k2 L γ N2) with a = (1 − μγ/2)^(T+1)."""
    start = number("start_distance_squared", start_distance_squared, at_least=0)
    left = remaining(contraction=setting.convexity * setting.step / 2, last_index=last_index)
    return as_curve(left * start + 2 / setting.convexity * setting.floor(*constants))
