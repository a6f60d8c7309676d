"""The best possible clock: how many seconds any method needs, when client i takes tau_i seconds for one gradient.

Workers compute stochastic gradients of variance sigma^2, one at a time, worker i in tau_i seconds; nothing else costs
time. With tau_1 <= ... <= tau_n sorted, and up to constant factors and logarithms, the time that no method can beat on
all problems with these constants is

    same data:        min_m h_m (A + V / m),    h_m = ((1/m) sum_{i<=m} 1/tau_i)^-1, the harmonic mean of the m fastest
    different data:   tau_n A + mean(tau) V / n

A is the number of steps that exact gradients would take, V the number of stochastic gradients that their noise costs:

    nonconvex        A = L D / eps              V = sigma^2 L D / eps^2    until |grad F|^2 <= eps;  D = F(x_0) - F*
    convex           A = sqrt(L) R / sqrt(eps)  V = sigma^2 R^2 / eps^2    until F - F* <= eps;      R = |x_0 - x*|
    strongly convex  A = sqrt(L / mu)           V = sigma^2 / (mu eps)     until F - F* <= eps

Tyurin & Richtárik, "Optimal Time Complexities of Parallel Stochastic Optimization Methods Under a Fixed Computation
Model", NeurIPS 2023; all together in the survey of Tyurin et al., 2026, equations (2) to (7). No assumption on how
alike the clients' data are removes mean(tau) (its Theorem 2.3).
"""

from __future__ import annotations

from math import ceil, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError

DataLikeness = Literal["same", "different"]


class Counts(NamedTuple):
    """How hard a problem is, up to constants.

    Args:
        steps: A, the steps that exact gradients would take.
        gradients: V, the stochastic gradients that their noise costs.
    """

    steps: float
    gradients: float


def nonconvex_counts(*, smoothness: float, start_gap: float, gradient_variance: float, target: float) -> Counts:
    """A and V until the squared norm of the gradient is `target`.

    >>> nonconvex_counts(smoothness=2.0, start_gap=3.0, gradient_variance=5.0, target=0.5)
    Counts(steps=12.0, gradients=120.0)
    """
    _require_positive(smoothness=smoothness, target=target)
    steps = smoothness * start_gap / target
    return Counts(steps, gradient_variance * steps / target)


def convex_counts(*, smoothness: float, start_distance: float, gradient_variance: float, target: float) -> Counts:
    """A and V until the objective gap of a convex problem is `target`.

    >>> convex_counts(smoothness=4.0, start_distance=3.0, gradient_variance=1.0, target=0.25)
    Counts(steps=12.0, gradients=144.0)
    """
    _require_positive(smoothness=smoothness, target=target)
    steps = sqrt(smoothness / target) * start_distance
    return Counts(steps, gradient_variance * (start_distance / target) ** 2)


def strongly_convex_counts(
    *, smoothness: float, strong_convexity: float, gradient_variance: float, target: float
) -> Counts:
    """A and V until the objective gap of a strongly convex problem is `target`, without the logarithms.

    >>> strongly_convex_counts(smoothness=8.0, strong_convexity=2.0, gradient_variance=3.0, target=0.5)
    Counts(steps=2.0, gradients=3.0)
    """
    _require_positive(smoothness=smoothness, strong_convexity=strong_convexity, target=target)
    return Counts(sqrt(smoothness / strong_convexity), gradient_variance / (strong_convexity * target))


def best_clock(times: ArrayLike, counts: Counts, data: DataLikeness) -> float:
    """The seconds that no method can beat on all problems with these counts, up to constants and logarithms.

    Args:
        times: (n,) tau_i, the seconds of one gradient, above 0, in any order. Infinite for a client that never answers.
        counts: how hard the problem is.
        data: whether all clients draw from the "same" distribution, or from "different" ones.

    >>> best_clock([1.0, 1.0, 50.0], Counts(10.0, 40.0), "same")  # the two fast ones: 1 (10 + 40 / 2)
    30.0
    >>> best_clock([1.0, 1.0, 4.0], Counts(10.0, 40.0), "different")  # 4 * 10 + 2 * 40 / 3
    66.66666666666667
    """
    seconds = _sorted_times(times)
    if data == "same":
        return float((_harmonic_means(seconds) * (counts.steps + counts.gradients / _numbers(seconds))).min())
    return float(seconds[-1] * counts.steps + seconds.mean() * counts.gradients / len(seconds))


def rennala_step_time(times: ArrayLike, changes: int) -> float:
    """A time within which Rennala SGD has its S changes, whatever the clients were doing: min_m h_m (1 + S / m).

    In h_m (1 + S/m) seconds the m fastest finish at least sum (h_m (1 + S/m) / tau_i - 1) = S changes.

    >>> rennala_step_time([1.0, 1.0, 50.0], 4)  # the two fast ones have them after 2 s
    3.0
    """
    seconds = _sorted_times(times)
    return float((_harmonic_means(seconds) * (1.0 + changes / _numbers(seconds))).min())


def malenia_step_time(times: ArrayLike, changes: int) -> float:
    """A time within which the harmonic mean of Malenia SGD's counts exceeds S/n: 2 (tau_n + mean(tau) S / n).

    In t >= tau_n seconds client i finishes floor(t / tau_i) >= t / (2 tau_i) changes, so that the harmonic mean of the
    counts is at least t / (2 mean(tau)).

    >>> malenia_step_time([1.0, 3.0], 4)
    14.0
    """
    seconds = _sorted_times(times)
    return 2.0 * float(seconds[-1] + seconds.mean() * changes / len(seconds))


class Plan(NamedTuple):
    """S changes a step, K steps of length 1/(2 L), and the seconds they take at the most."""

    changes_per_step: int
    steps: int
    seconds: float


def rennala_plan(
    times: ArrayLike, *, smoothness: float, start_gap: float, gradient_variance: float, target: float
) -> Plan:
    """Rennala SGD until the mean squared norm of the gradient is `target`; clients have the same data.

    The descent lemma for x - (1/(2L)) g, the noise of g being at most sigma^2 / S, gives

        mean over k < K of E |grad F(x_k)|^2 <= (8/3) L D / K + sigma^2 / (3 S) <= eps

    for S = max(1, ceil(sigma^2 / eps)) and K = ceil(4 L D / eps). Its time is at most 8 times `best_clock`, and one
    step more. (The paper's own theorem has other constants.)

    >>> rennala_plan([1.0, 1.0, 50.0], smoothness=2.0, start_gap=3.0, gradient_variance=2.0, target=0.5)
    Plan(changes_per_step=4, steps=48, seconds=144.0)
    """
    changes, steps = _batch_and_steps(smoothness, start_gap, gradient_variance, target)
    return Plan(changes, steps, steps * rennala_step_time(times, changes))


def malenia_plan(
    times: ArrayLike, *, smoothness: float, start_gap: float, gradient_variance: float, target: float
) -> Plan:
    """Malenia SGD until the mean squared norm of the gradient is `target`; clients' data may differ.

    As for `rennala_plan`: the noise of its step, sigma^2 (1/n) mean(1/B_i), is below sigma^2 / S. Its time is at most
    16 times `best_clock`, and one step more.

    >>> malenia_plan([1.0, 3.0], smoothness=2.0, start_gap=3.0, gradient_variance=2.0, target=0.5)
    Plan(changes_per_step=4, steps=48, seconds=672.0)
    """
    changes, steps = _batch_and_steps(smoothness, start_gap, gradient_variance, target)
    return Plan(changes, steps, steps * malenia_step_time(times, changes))


class SpeedUp(NamedTuple):
    """The mean seconds of as many changes as there are clients at work."""

    asynchronous: float
    synchronous: float

    @property
    def factor(self) -> float:
        """How many times faster the asynchronous server gets them."""
        return self.synchronous / self.asynchronous


def concurrency_speed_up(times: ArrayLike, concurrency: int) -> SpeedUp:
    """What not waiting for the slowest saves, for constant times and clients drawn uniformly with replacement.

    C changes take mean(D) seconds if nobody waits, and the mean of the longest of C draws if all are waited for:

        sum_i a_i D_(i),     a_i = (i^C - (i - 1)^C) / n^C,     D_(1) <= ... <= D_(n)

    Args:
        times: (n,) D_i, the seconds of a ticket, above 0.
        concurrency: C, clients at work at once, 1 or more.

    >>> fast_and_slow = [10.0] * 900 + [60.0] * 100
    >>> [round(seconds, 2) for seconds in concurrency_speed_up(fast_and_slow, 10)]
    [15.0, 42.57]

    Koloskova, Stich & Jaggi, "Sharper Convergence Guarantees for Asynchronous SGD for Distributed and Federated
    Learning", NeurIPS 2022, Lemma 11.
    """
    seconds = _sorted_times(times)
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency}; at least 1 client must be at work.")
    chances = np.diff((np.arange(len(seconds) + 1) / len(seconds)) ** concurrency)
    return SpeedUp(float(seconds.mean()), float(chances @ seconds))


def _batch_and_steps(smoothness: float, start_gap: float, variance: float, target: float) -> tuple[int, int]:
    _require_positive(smoothness=smoothness, target=target)
    return max(1, ceil(variance / target)), max(1, ceil(4.0 * smoothness * start_gap / target))


def _harmonic_means(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """h_m of the m fastest, m = 1 ... n."""
    means: NDArray[np.float64] = _numbers(seconds) / np.cumsum(1.0 / seconds)
    return means


def _numbers(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.arange(1.0, len(seconds) + 1.0)


def _sorted_times(times: ArrayLike) -> NDArray[np.float64]:
    seconds = np.sort(np.asarray(times, np.float64).ravel())
    if not len(seconds) or not seconds[0] > 0 or np.isnan(seconds).any():
        raise ConfigError("times must be one number of seconds for each client, all above 0.")
    return seconds


def _require_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value > 0:
            raise ConfigError(f"{name} is {value}; it must be above 0.")
