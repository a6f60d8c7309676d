"""What theorems require of a run: each condition yields a sentence where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from asyncfed.theory.constants import Constants
from asyncfed.theory.setting import Setting


def smooth_and_convex(constants: Constants, convexity: float | None) -> Iterator[str]:
    """The loss is smooth, and its `convexity` μ is above 0."""
    if constants.smoothness is None or not isfinite(constants.smoothness):
        yield "the loss is not smooth"
    elif not convexity:
        yield "some client's loss is not strongly convex"


def uniform_rounds(setting: Setting) -> Iterator[str]:
    """Rounds of uniformly drawn, complete cohorts, with the same step and bounded staleness."""
    yield from setting.outside
    if setting.rule.form is None or setting.rule.form == "latest":
        yield f"it does not describe the rule {setting.rule.name}"
    elif setting.rule.form == "models" and setting.staleness != 0:
        yield "mixing models in is not a step along deltas once models are stale"
    if not setting.rule.fresh_cohorts:
        yield f"clients are not drawn independently of the model ({setting.rule.because})"
    if setting.changing_rate:
        yield f"the step changes between rounds ({setting.changing_rate})"
    if setting.fewest_steps != setting.most_steps:
        yield f"clients take different numbers of local steps ({setting.fewest_steps} to {setting.most_steps})"
    if not setting.rule.constant_weight:
        yield "updates do not all count the same"
    if not setting.lossless:
        yield "tickets are lost or dropped, so cohorts are not uniform"
    if setting.staleness is None:
        yield "staleness has no bound (set strategy.max_staleness)"


def steady_path(setting: Setting, curvature: tuple[float, float] | None) -> Iterator[str]:
    """The same step and weight for all updates, bounded staleness, and (L, μ) of every loss stepped on."""
    yield from setting.outside
    if setting.changing_rate:
        yield f"the step changes between rounds ({setting.changing_rate}); see the bound along the recorded path"
    if not setting.rule.constant_weight:
        yield "updates count less the staler they are; see the bound along the recorded path"
    if setting.staleness is None:
        yield "staleness has no bound (set strategy.max_staleness)"
    if curvature is None:
        yield "a local step's loss (a mini-batch's) is not smooth and strongly convex; an L2 penalty makes it so"


def step_curvature(setting: Setting, constants: Constants) -> tuple[float, float] | None:
    """(L, μ) of every loss a local step is made on, or None if some is not strongly convex."""
    if setting.batches == "full":
        smoothness, convexity = constants.smoothness, constants.strong_convexity
    else:
        smoothness, convexity = constants.batch_smoothness, constants.batch_strong_convexity
    if smoothness is None or not isfinite(smoothness) or not convexity:
        return None
    return smoothness, convexity


def full_gradients(setting: Setting) -> Iterator[str]:
    """Every local step uses all of the client's rows."""
    if setting.batches != "full":
        yield "reshuffled batches are not conditionally unbiased (R-conv allows them)"


def equal_batches(setting: Setting) -> Iterator[str]:
    """All batches of an epoch have as many rows."""
    if setting.batches == "uneven":
        yield "the last batch of an epoch is shorter; choose a batch size that divides every client's rows"
