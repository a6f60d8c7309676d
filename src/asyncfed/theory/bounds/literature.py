"""What others have proved about delayed gradients, to be shown beside our bounds, with how sure we are of each.

Only constants we have seen confirmed are given as numbers; the others are words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asyncfed.theory.bounds.arguments import count, number
from asyncfed.theory.bounds.delay_stability import delay_stability_limit


@dataclass(frozen=True)
class Result:
    """One row of the literature: its `source`, the `setting`, the `statement` and how `sure` we are of it.

    `step_limit(smoothness, staleness)` is the largest step, where it is sure.
    """

    source: str
    setting: str
    statement: str
    sure: str
    step_limit: Callable[[float, int], float] | None = None


def levin_may_step(smoothness: float, staleness: int) -> float:
    """2 sin(π/(2(2τ+1)))/L. L > 0, τ ≥ 0.

    >>> f"{levin_may_step(1.0, 8):.6g}"
    '0.184537'
    """
    return delay_stability_limit(staleness) / number("smoothness", smoothness, above=0)


def stich_karimireddy_step(smoothness: float, staleness: int) -> float:
    """1/(10 L τ), noise that does not grow with the gradient. L > 0, τ ≥ 1.

    >>> stich_karimireddy_step(1.0, 2)
    0.05
    """
    return 1 / (10 * number("smoothness", smoothness, above=0) * count("staleness", staleness, at_least=1))


def choi_step(smoothness: float, staleness: int) -> float:
    """1/(4 L τ) for τ = 1, 3/(10 L τ) for τ ≥ 2. L > 0, τ ≥ 1.

    >>> choi_step(1.0, 1), choi_step(0.25, 2)
    (0.25, 0.6)
    """
    delay = count("staleness", staleness, at_least=1)
    return (0.25 if delay == 1 else 0.3) / (number("smoothness", smoothness, above=0) * delay)


LITERATURE = (
    Result(
        source="Levin & May 1976",
        setting="x_{t+1} = x_t - a x_{t-τ}, constant delay",
        statement="stable if and only if 0 < a < 2 cos(τπ/(2τ+1)) = 2 sin(π/(2(2τ+1)))",
        sure="yes; exact, and checked numerically",
        step_limit=levin_may_step,
    ),
    Result(
        source="Stich & Karimireddy 2020 (JMLR 21)",
        setting="constant delay τ, noise M‖∇f‖² + σ², γ ≤ 1/(10L(τ+M))",
        statement="E f - f* = Õ(L(τ+M)‖x0-x*‖² exp(-Θ(μT/(L(τ+M)))) + σ²/(μT))",
        sure="the step 1/(10Lτ) is confirmed by the abstract of arXiv 2308.11984; the exponent's constant is not",
        step_limit=stich_karimireddy_step,
    ),
    Result(
        source="Choi, Choi & Seok (arXiv 2308.11984)",
        setting="fixed delay, deterministic, η ≤ 1/(4Lτ) for τ = 1, ≤ 3/(10Lτ) for τ ≥ 2",
        statement="linear rate of the last iterate",
        sure="the step ranges are confirmed by the abstract; the rate's constant was not seen",
        step_limit=choi_step,
    ),
    Result(
        source="Arjevani, Shamir & Srebro 2020",
        setting="quadratics, delayed SGD, step of order 1/(L(τ+1))",
        statement="the shape of Stich & Karimireddy",
        sure="the constant is not",
    ),
    Result(
        source="Mishchenko, Bach, Even & Woodworth 2022",
        setting="asynchronous SGD on one shared objective, steps of order min(1/(LM), 1/(Lτ_t))",
        statement="the number of workers M takes the place of τ_max; with unlike clients a floor of order ζ² remains",
        sure="the shape is, the constants are not",
    ),
    Result(
        source="Koloskova, Stich & Jaggi 2022",
        setting="non-convex, delays of mean τ_avg",
        statement="O(σ²/ε² + τ_avg/ε) with steps adapted to the delay",
        sure="the rate with τ_avg is confirmed by the abstract; there is no strongly convex rate",
    ),
    Result(
        source="FedBuff (Nguyen et al. 2022); Toghani & Uribe (arXiv 2210.01161)",
        setting="non-convex, buffered; bounded gradients, which the second paper removes",
        statement="convergence for server and client steps with η_g η_l Q of order 1/L",
        sure="the constants are not checked",
    ),
    Result(
        source="Feyzmahdavian, Aytekin & Johansson 2014",
        setting="V_{t+1} ≤ p V_t + q max_{[t-h, t]} V + r, p + q < 1",
        statement="V_t ≤ ρ^t V_0 + r/(1-p-q), ρ = (p+q)^(1/(1+h))",
        sure="yes; proved in delayed_sequence_bound",
    ),
)
"""The rows in the order they are shown."""
