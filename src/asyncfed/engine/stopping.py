"""Stopping early: when a measurement has stopped improving, when it is good enough, when the energy is spent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf, isfinite
from typing import Any, Literal

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Config


class Stopping(Config):
    """Rules that end a run before its budget does; whichever is met first. At least one must be set.

    Args:
        metric: the measurement that `patience` and `target` are about, such as `validation_loss`, `test_accuracy` or
            `objective`. Accuracies are to rise, everything else is to fall.
        patience: stop after so many evaluations in a row in which the metric did not improve on its best, at least 1.
        min_improvement: what counts as an improvement, zero or positive, in the unit of the metric.
        min_progress: the same as a share of what was gained since the first evaluation, 0 or more and below 1: the best
            must improve by this much of its distance to the first. It has no unit, so that one value suits all data.
        target: stop when the metric is this good.
        energy: stop when so many joules of computing were spent, positive.
        keep: the model that the run is left with: the "last", or the "best" that was measured by the metric.

    >>> Stopping(metric="objective", patience=5).measures
    True
    """

    metric: str = "validation_loss"
    patience: int | None = None
    min_improvement: float = 0.0
    target: float | None = None
    energy: float | None = None
    min_progress: float = 0.0
    keep: Literal["last", "best"] = "last"

    def __post_init__(self) -> None:
        if self.patience is None and self.target is None and self.energy is None:
            raise ConfigError("stopping has no rule; set stopping.patience, stopping.target or stopping.energy.")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"stopping.patience is {self.patience}; it must be at least 1 evaluation.")
        if not (isfinite(self.min_improvement) and self.min_improvement >= 0):
            raise ConfigError(f"stopping.min_improvement is {self.min_improvement}; it must be zero or positive.")
        if not 0 <= self.min_progress < 1:
            raise ConfigError(f"stopping.min_progress is {self.min_progress}; it must be 0 or more, and below 1.")
        if self.energy is not None and not (isfinite(self.energy) and self.energy > 0):
            raise ConfigError(f"stopping.energy is {self.energy}; it must be a positive number of joules.")

    @property
    def measures(self) -> bool:
        """Whether a measurement decides, so that when it is made is part of the run."""
        return self.patience is not None or self.target is not None or self.keep == "best"

    @property
    def rises(self) -> bool:
        """Whether larger values of the metric are better."""
        return self.metric.endswith("accuracy")

    def cost_of(self, value: float) -> float:
        """The metric's value as something that is to fall."""
        return -value if self.rises else value

    def check(self, measured: Collection[str], every: int) -> None:
        """Refuse rules about what is not measured."""
        if not self.measures:
            return
        if self.metric not in measured:
            missing = ", which needs a [holdout]" if self.metric.startswith(("validation", "test")) else ""
            raise ConfigError(
                f'stopping.metric is "{self.metric}"{missing}. {did_you_mean(self.metric, measured)} '
                "Hold rows out, or stop by another metric."
            )
        if every == 0:
            raise ConfigError(
                "evaluation.every is 0, so stopping would never be decided; set it to at least 1, or stop by energy."
            )


class StoppingMonitor:
    """Decides when the rules of a `Stopping` are met: keeps the best value so far and how long ago it was."""

    def __init__(self, rules: Stopping) -> None:
        self.rules = rules
        self._first = inf
        self._lowest = inf  # by however little
        self._best = inf  # by as much as counts as an improvement
        self._best_round = 0
        self._without = 0

    def reason(self, metrics: Mapping[str, float], round: int) -> str | None:
        """Note an evaluation. Returns why the run is to stop, or None."""
        rules = self.rules
        if not rules.measures:
            return None
        value = metrics[rules.metric]
        cost = rules.cost_of(value)
        if not isfinite(self._first):
            self._first = cost
        progress = self._first - self._best if isfinite(self._best) else 0.0
        if cost < self._best - max(rules.min_improvement, rules.min_progress * progress):
            self._best, self._best_round, self._without = cost, round, 0
        else:
            self._without += 1
        if rules.target is not None and cost <= rules.cost_of(rules.target):
            return f"{rules.metric} is {value:.4g}: the target of {rules.target:g} is reached"
        if rules.patience is not None and self._without >= rules.patience:
            return (
                f"stopped early: {rules.metric} has not improved in {self._without} evaluations "
                f"(best {rules.cost_of(self._best):.4g}, in round {self._best_round})"
            )
        return None

    def is_best(self, metrics: Mapping[str, float]) -> bool:
        """Note which measurement is the lowest so far. Returns whether this one is, and the model is to be kept."""
        if self.rules.keep != "best":
            return False
        cost = self.rules.cost_of(metrics[self.rules.metric])
        if not cost < self._lowest:
            return False
        self._lowest = cost
        return True

    def spent(self, energy: float) -> str | None:
        """Why the run is to stop when this much energy was spent, or None."""
        limit = self.rules.energy
        if limit is None or energy < limit:
            return None
        return f"the energy budget of {limit:g} J is spent"

    def snapshot(self) -> dict[str, Any]:
        """The state that a checkpoint keeps."""
        known = {"best": self._best, "first": self._first, "lowest": self._lowest}
        numbers = {name: value if isfinite(value) else None for name, value in known.items()}
        return {**numbers, "best_round": self._best_round, "without": self._without}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; those of earlier versions know neither the first value nor the lowest."""
        self._best, self._first, self._lowest = (
            inf if snapshot.get(name) is None else snapshot[name] for name in ("best", "first", "lowest")
        )
        self._best_round, self._without = snapshot["best_round"], snapshot["without"]
