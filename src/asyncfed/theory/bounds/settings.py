"""A run as the theorems see it: one frozen value for each family of bounds, checked once, when it is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from asyncfed.core.errors import ConfigError
from asyncfed.theory.bounds.argument_meanings import explain_arguments
from asyncfed.theory.bounds.arguments import cohort, count, curvature, number
from asyncfed.theory.bounds.local_rates import each_rate

ANY_RATES = "λ > 0 of the local steps: one number, or I of them."
PATH_RATES = "λ_i, 0 < λ_i ≤ 2/(L + μ): one number, or I of them."
PATH_STEP = "η of P, 0 < η ≤ 1: the server adds η times each delta. α of M: it keeps 1 − α of its own model."
GRADIENT = "max_c ‖∇F_c(x*)‖ ≥ 0, not squared; from it b ≤ (s/μ) max_c ‖∇F_c(x*)‖. Give this or `fixed_point_gap`."
GAP = (
    "b = max_c ‖x* − G_c(x*)‖ ≥ 0, not squared: run I local steps from x* and measure. Give this or "
    "`largest_optimum_gradient`."
)


@explain_arguments()
@dataclass(frozen=True, kw_only=True)
class TheoremSetting:
    """A run as Theorem 1 sees it: no staleness, and J deltas of I equal local steps are added up.

    >>> TheoremSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5,
    ...                num_clients=10, cohort_size=5, local_steps=20, learning_rate=1 / 2000,
    ...                start_distance_squared=3).effective_step
    0.05
    """

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: float
    start_distance_squared: float

    def __post_init__(self) -> None:
        _check_rounds(self)
        number("learning_rate", self.learning_rate, above=0)

    @property
    def effective_step(self) -> float:
        """λ̃ = λ J I."""
        return self.learning_rate * self.cohort_size * self.local_steps


@explain_arguments(learning_rate=ANY_RATES)
@dataclass(frozen=True, kw_only=True)
class StaleSetting:
    """A run as R*, R and R-conv see it: uniformly drawn cohorts whose models may be up to τ versions old.

    >>> StaleSetting(smoothness=4, strong_convexity=.5, gradient_variance=2, optimum_heterogeneity=1.5, num_clients=10,
    ...              cohort_size=5, local_steps=20, learning_rate=1 / 2560, start_distance_squared=3, staleness=-1)
    Traceback (most recent call last):
    ...
    asyncfed.core.errors.ConfigError: staleness is -1, but must be at least 0.
    """

    smoothness: float
    strong_convexity: float
    gradient_variance: float
    optimum_heterogeneity: float
    num_clients: int
    cohort_size: int
    local_steps: int
    learning_rate: ArrayLike
    start_distance_squared: float
    staleness: int
    server_step: float = 1.0

    def __post_init__(self) -> None:
        _check_rounds(self)
        _keep_rates(self, self.learning_rate, self.local_steps)
        count("staleness", self.staleness)
        number("server_step", self.server_step, above=0)


@explain_arguments(
    learning_rate=PATH_RATES, server_step=PATH_STEP, largest_optimum_gradient=GRADIENT, fixed_point_gap=GAP
)
@dataclass(frozen=True, kw_only=True)
class PathSetting:
    """A run as P and M see it: any order of clients, staleness up to τ. Exactly one of the last two fields is given.

    >>> run = PathSetting(smoothness=4, strong_convexity=.5, learning_rate=[.002, .001], local_steps=2, staleness=2,
    ...                   largest_optimum_gradient=.3)
    >>> run.learning_rate
    (0.002, 0.001)
    """

    smoothness: float
    strong_convexity: float
    learning_rate: ArrayLike
    local_steps: int
    staleness: int
    server_step: float = 1.0
    largest_optimum_gradient: float | None = None
    fixed_point_gap: float | None = None

    def __post_init__(self) -> None:
        curvature(self.smoothness, self.strong_convexity)
        _keep_rates(self, self.learning_rate, self.local_steps)
        count("staleness", self.staleness)
        number("server_step", self.server_step, above=0, at_most=1, advice="P and M are proved for no other.")
        gradient, gap = self.largest_optimum_gradient, self.fixed_point_gap
        if (gradient is None) == (gap is None):
            given = "neither is" if gap is None else "both are"
            raise ConfigError(
                f"Of largest_optimum_gradient and fixed_point_gap {given} given, but exactly one is needed. "
                "Give the largest ‖∇F_c(x*)‖, or how far local training leads away from x*."
            )
        for name, value in (("largest_optimum_gradient", gradient), ("fixed_point_gap", gap)):
            if value is not None:
                number(name, value, at_least=0)


def _check_rounds(setting: TheoremSetting | StaleSetting) -> None:
    """What both settings of uniformly drawn rounds have in common."""
    curvature(setting.smoothness, setting.strong_convexity)
    number("gradient_variance", setting.gradient_variance, at_least=0)
    number("optimum_heterogeneity", setting.optimum_heterogeneity, at_least=0)
    cohort(setting.num_clients, setting.cohort_size)
    count("local_steps", setting.local_steps, at_least=1)
    number("start_distance_squared", setting.start_distance_squared, at_least=0)


def _keep_rates(setting: StaleSetting | PathSetting, rates: ArrayLike, local_steps: int) -> None:
    """Check the local rates, and keep several of them as a tuple: an array could be changed, and not be compared."""
    found = each_rate(rates, local_steps)
    if np.ndim(rates):
        object.__setattr__(setting, "learning_rate", tuple(found.tolist()))
