"""What a client loses by taking part in P releases with Gaussian noise, when nothing is sampled: exactly.

A release that one client moves by at most C (L2), with noise N(0, (z C)^2), hides the client as well as one draw from
N(0, 1) hides a shift of 1/z. P of them, also chosen one after another, hide it as well as a shift of

    mu = sqrt(P) / z

does, and a shift of mu is hidden exactly to the degree

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

No amplification by sampling enters: who arrives takes part, and nobody draws who does.

Dong, Roth & Su, "Gaussian Differential Privacy", JRSS B 2022; Balle & Wang, "Improving the Gaussian Mechanism for
Differential Privacy: Analytical Calibration and Optimal Denoising", ICML 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isfinite, log, log1p, pi, sqrt

from asyncfed.core.errors import ConfigError

LARGEST_SHIFT = 1e8
"""Of mu: beyond it nothing is hidden, and neither is below its inverse anything seen."""


def log_delta(epsilon: float, mu: float) -> float:
    """The logarithm of delta(epsilon) for a shift of mu, also where delta itself is no number any more.

    With x = epsilon/mu - mu/2 and y = x + mu, both terms have the factor phi(x), so that

        delta = phi(x) (m(x) - m(y)),     m(x) = Phi(-x) / phi(x), Mills' ratio.

    Args:
        epsilon: 0 or more.
        mu: the shift, above 0.

    >>> round(exp(log_delta(1.0, 1.0)), 6)
    0.126937
    """
    from scipy.special import erfcx, log_ndtr  # loads scipy

    x = epsilon / mu - mu / 2.0
    y = x + mu
    if x < -5.0:  # nearly everything is seen: the first term is nearly 1, and Mills' ratio too large
        first, second = float(log_ndtr(-x)), epsilon + float(log_ndtr(-y))
        return first + log1p(-exp(second - first)) if second < first else -inf
    difference = sqrt(pi / 2.0) * float(erfcx(x / sqrt(2.0)) - erfcx(y / sqrt(2.0)))
    return -x * x / 2.0 - 0.5 * log(2.0 * pi) + log(difference) if difference > 0 else -inf


def epsilon_of_shift(mu: float, delta: float) -> float:
    """The epsilon that a shift of mu has at this delta; 0 if it is hidden so well.

    Args:
        mu: the shift, above 0.
        delta: above 0 and below 1.

    >>> round(epsilon_of_shift(mu=1.0, delta=1e-5), 6)
    4.377178
    """
    check_delta(delta)
    if not 0 < mu < inf:
        raise ConfigError(f"the shift mu is {mu}; it must be a positive number: there must be noise.")
    wanted = log(delta)
    if log_delta(0.0, mu) <= wanted:
        return 0.0
    high = 1.0
    while log_delta(high, mu) > wanted:
        high *= 2.0
        if high > 1e300:
            return inf
    return _root(lambda epsilon: log_delta(epsilon, mu) - wanted, 0.0, high)


def shift_for(epsilon: float, delta: float) -> float:
    """The largest shift mu that is hidden to (epsilon, delta).

    Args:
        epsilon: 0 or more.
        delta: above 0 and below 1.

    >>> round(shift_for(epsilon=1.0, delta=1e-5), 6)
    0.268051
    """
    check_epsilon(epsilon)
    check_delta(delta)
    wanted, low, high = log(delta), -log(LARGEST_SHIFT), log(LARGEST_SHIFT)
    if log_delta(epsilon, exp(low)) > wanted:
        raise ConfigError(f"epsilon {epsilon:g} with delta {delta:g} needs noise of more than {LARGEST_SHIFT:g} clips.")
    if log_delta(epsilon, exp(high)) < wanted:
        raise ConfigError(f"epsilon is {epsilon:g}, so large that nothing is hidden. Make it smaller, such as 2.")
    return exp(_root(lambda log_mu: log_delta(epsilon, exp(log_mu)) - wanted, low, high))


def epsilon_of(multiplier: float, participations: int, delta: float) -> float:
    """The epsilon of a client that takes part in so many releases.

    Args:
        multiplier: z, the noise's standard deviation in clips, above 0.
        participations: P, 0 or more; without any, nothing is lost.
        delta: above 0 and below 1.

    >>> round(epsilon_of(multiplier=4.0, participations=10, delta=1e-5), 8)
    3.34140947
    """
    check_delta(delta)
    if not (isfinite(multiplier) and multiplier > 0):
        raise ConfigError(f"the noise multiplier is {multiplier}; without noise nothing is hidden. Make it positive.")
    return 0.0 if participations == 0 else epsilon_of_shift(sqrt(participations) / multiplier, delta)


def multiplier_for(epsilon: float, participations: int, delta: float) -> float:
    """The noise multiplier z with which so many releases cost a client this epsilon.

    Args:
        epsilon: above 0.
        participations: P, 1 or more.
        delta: above 0 and below 1.

    >>> round(multiplier_for(epsilon=2.0, participations=10, delta=1e-5), 8)
    6.30498856
    """
    if participations < 1:
        raise ConfigError(f"participations is {participations}; it must be at least 1.")
    return sqrt(participations) / shift_for(epsilon, delta)


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that is no positive number."""
    if not 0 < epsilon < inf:
        raise ConfigError(f"epsilon is {epsilon}; it must be a positive number, such as 2.")


def check_delta(delta: float) -> None:
    """Refuse a delta that is no probability between 0 and 1."""
    if not 0 < delta < 1:
        raise ConfigError(f"delta is {delta}; it must be above 0 and below 1, and well below 1 / number of clients.")


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # loads scipy

    return float(brentq(function, low, high, xtol=1e-15, rtol=1e-14, maxiter=500))
