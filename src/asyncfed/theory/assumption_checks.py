"""One check for each assumption of the theorems, with the number behind the answer."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from asyncfed.theory.bounds import enough_rounds, largest_effective_step, met_from_round, rounds_needed, step_excess
from asyncfed.theory.constants import Constants
from asyncfed.theory.setting import Setting

State = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class AssumptionCheck:
    """The answer to one question about a run.

    Attributes:
        question: what the theorems assume, as a question.
        state: "yes", "no" or "unknown".
        answer: the reason, with its number.
        factor: how many times too large a step is, where that is the question.
    """

    question: str
    state: State
    answer: str
    factor: float | None = None


def check_assumptions(setting: Setting, constants: Constants) -> tuple[AssumptionCheck, ...]:
    """All checks, in the order in which the theorems make their assumptions."""
    return (
        _smooth(constants),
        _strongly_convex(constants),
        _batches(setting),
        _independent(setting),
        _constant_step(setting),
        _paper_step(setting, constants),
        _stale_step(setting, constants),
        _staleness(setting),
        _enough_rounds(setting, constants),
    )


def _smooth(constants: Constants) -> AssumptionCheck:
    question = "Smooth?"
    smoothness = constants.smoothness
    if smoothness is None or not isfinite(smoothness):
        words = "the hinge has a kink, so no L exists and no theorem of the paper applies"
        return AssumptionCheck(question, "no", words)
    return AssumptionCheck(
        question, "yes", f"L = {smoothness:.6g} (largest over clients; of the objective {_of(constants)})"
    )


def _of(constants: Constants) -> str:
    return "unknown" if constants.objective_smoothness is None else f"{constants.objective_smoothness:.6g}"


def _strongly_convex(constants: Constants) -> AssumptionCheck:
    question = "Strongly convex, every client?"
    own, whole = constants.strong_convexity or 0.0, constants.objective_strong_convexity or 0.0
    if own > 0:
        return AssumptionCheck(question, "yes", f"μ = {own:.6g} (smallest over clients; of the objective {whole:.6g})")
    rest = f"; their mean is, μ_F = {whole:.6g}: R-conv needs no more" if whole > 0 else ", nor is their mean"
    return AssumptionCheck(question, "no", f"some client's curvature is 0 in some direction{rest}")


def _batches(setting: Setting) -> AssumptionCheck:
    question = "Gradients unbiased?"
    if setting.batches == "full":
        return AssumptionCheck(question, "yes", "every local step uses all of the client's rows")
    if setting.batches == "equal":
        words = f"reshuffled batches of {setting.batch_size} are not conditionally unbiased; R-conv allows them"
        return AssumptionCheck(question, "no", words)
    words = f"reshuffled batches of {setting.batch_size}, the last of an epoch shorter, which moves the fixed point"
    return AssumptionCheck(question, "no", words)


def _independent(setting: Setting) -> AssumptionCheck:
    state: State = "yes" if setting.rule.fresh_cohorts else "no"
    return AssumptionCheck("Clients drawn independently of the model?", state, setting.rule.because)


def _constant_step(setting: Setting) -> AssumptionCheck:
    question = "Constant step?"
    if setting.changing_rate:
        return AssumptionCheck(question, "no", setting.changing_rate)
    inside = " (it decays within a ticket, which R* allows)" if setting.shape.min() < setting.shape.max() else ""
    return AssumptionCheck(question, "yes", f"{setting.learning_rate:g} at every dispatch{inside}")


def _paper_step(setting: Setting, constants: Constants) -> AssumptionCheck:
    """The paper's condition in both readings of I, and for a server that averages."""
    question = "The paper's step condition, rate ≤ 1/(6 L J I)?"
    smoothness = constants.smoothness
    if smoothness is None or not isfinite(smoothness):
        return AssumptionCheck(question, "no", "there is no L, so no step is small enough")
    readings = [("epochs", setting.epochs)]
    if setting.most_steps != setting.epochs:
        readings.append(("steps", setting.most_steps))
    factors = {word: _excess(setting, smoothness, setting.round_size, local) for word, local in readings}
    averaged = {word: _excess(setting, smoothness, 1, local) for word, local in readings}
    worst = max(factors.values())
    parts = [f"{_against_limit(factors[word])} with I = {local} {word}" for word, local in readings]
    if worst <= 1:
        return AssumptionCheck(question, "yes", " / ".join(parts), worst)
    also = " / ".join(map(_against_limit, averaged.values()))
    words = f"{' / '.join(parts)} (read for a server that averages: {also})"
    if setting.decay_over_rounds:
        first = met_from_round(
            base_learning_rate=setting.learning_rate,
            smoothness=smoothness,
            cohort_size=setting.round_size,
            local_steps=setting.most_steps,
        )
        words += f"; with 1/sqrt(round) it is met from round {first:,}"
    return AssumptionCheck(question, "no", words, worst)


def _against_limit(factor: float) -> str:
    """A step as a multiple of the largest one allowed.

    >>> _against_limit(0.05), _against_limit(24.4747)
    ('met, 0.05x the limit', 'missed by 24.47x')
    """
    return f"met, {factor:.3g}x the limit" if factor <= 1 else f"missed by {factor:.4g}x"


def _excess(setting: Setting, smoothness: float, cohort_size: int, local_steps: int) -> float:
    return float(
        step_excess(
            learning_rate=setting.learning_rate, smoothness=smoothness, cohort_size=cohort_size, local_steps=local_steps
        )
    )


def _stale_step(setting: Setting, constants: Constants) -> AssumptionCheck:
    """The condition of R*, R and R-conv, which know the staleness."""
    question = "R*'s step condition, η Σ rate ≤ 1/(8 L m)?"
    smoothness = constants.smoothness if setting.batches == "full" else constants.batch_smoothness
    if smoothness is None or not isfinite(smoothness):
        return AssumptionCheck(question, "no", "there is no L, so no step is small enough")
    if setting.staleness is None:
        return AssumptionCheck(question, "unknown", "m = τ + 1/η needs a bound on staleness")
    step = setting.rule.server_step
    limit = largest_effective_step(smoothness=smoothness, staleness=setting.staleness, server_step=step)
    factor = setting.effective_step / limit
    words = f"{setting.effective_step:.4g} is {factor:.4g}x the limit {limit:.4g} (τ = {setting.staleness})"
    return AssumptionCheck(question, "yes" if factor <= 1 + 1e-9 else "no", words, factor)


def _staleness(setting: Setting) -> AssumptionCheck:
    question = "Staleness bounded?"
    declared, seen = setting.declared_staleness, setting.observed_staleness
    observed = "not run yet" if seen is None else f"observed {seen}"
    if declared is None:
        return AssumptionCheck(question, "no", f"nothing declared (strategy.max_staleness); {observed}")
    if seen is not None and seen > declared:
        return AssumptionCheck(question, "no", f"declared {declared}, but {observed}: the bound was not kept")
    return AssumptionCheck(question, "yes", f"at most {declared} versions; {observed}")


def _enough_rounds(setting: Setting, constants: Constants) -> AssumptionCheck:
    """Whether the paper's constant 9/2 may be used: (1 − μ λ̃/2)^rounds ≤ 2/3 at its own λ̃ = λ J I."""
    question = "Enough rounds?"
    convexity, smoothness = constants.strong_convexity or 0.0, constants.smoothness
    if setting.num_rounds is None or not convexity or smoothness is None or not isfinite(smoothness):
        return AssumptionCheck(question, "unknown", "the theorem does not apply, so it does not say")
    planned = setting.learning_rate * setting.round_size * setting.most_steps
    step = min(planned, 1 / (6 * smoothness))
    needed = rounds_needed(strong_convexity=convexity, effective_step=step)
    enough = bool(
        enough_rounds(strong_convexity=convexity, effective_step=step, last_index=max(0, setting.num_rounds - 1))
    )
    at = "at this step" if planned <= step else "at the largest admissible step"
    words = f"{setting.num_rounds:,} rounds; {needed:,} are needed {at}"
    return AssumptionCheck(question, "yes" if enough else "no", words)
