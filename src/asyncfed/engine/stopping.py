"""Stopping early: when a measurement has stopped improving, when it is good enough, when the energy is spent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf, isfinite
from typing import Any, Literal

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Config


def rises(metric: str) -> bool:
    """Whether larger values of this metric are better: accuracies are to rise, everything else is to fall."""
    return metric.endswith("accuracy")


RISEN = 0.05
"""Of all progress: a metric that is above its best by more has not settled there; it oscillates, or rises."""


class Stopping(Config):
    """Rules that end a run before its budget does; whichever is met first. At least one must be set.

    Args:
        metric: the measurement that `patience` and `target` are about, such as `validation_loss`, `test_accuracy` or
            `objective`. Accuracies are to rise, everything else is to fall.
        patience: stop after so many evaluations in a row in which the metric did not improve on its best, at least 1.
        min_improvement: what counts as an improvement, zero or positive, in the unit of the metric.
        min_progress: the same as a share of what was gained since the first evaluation, or of the best value where that
            is smaller, 0 or more and below 1. It has no unit, so that one value suits all data.
        target: stop when the metric is this good.
        energy: stop when so many joules of computing were spent, positive.
        keep: the model that the run is left with: the "last", or the "best" that was measured by the metric.
        overfit_metric: a loss on held-out rows, `validation_loss` or `test_loss`, that may not rise while the metric
            falls. The run stops after `patience` evaluations in a row in which it was above its lowest by more than the
            standard error of that; and `keep = "best"` keeps, of the models within that error, the one with the best
            metric. None: held-out rows do not count. Needs a problem that measures single rows, as tables do.

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
    overfit_metric: str | None = None

    def __post_init__(self) -> None:
        if self.patience is None and self.target is None and self.energy is None:
            raise ConfigError("stopping has no rule; set stopping.patience, stopping.target or stopping.energy.")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"stopping.patience is {self.patience}; it must be at least 1 evaluation.")
        if not (isfinite(self.min_improvement) and self.min_improvement >= 0):
            raise ConfigError(f"stopping.min_improvement is {self.min_improvement}; it must be zero or positive.")
        if self.overfit_metric not in (None, "validation_loss", "test_loss"):
            raise ConfigError(
                f'stopping.overfit_metric is "{self.overfit_metric}"; it must be validation_loss or test_loss.'
            )
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
        return rises(self.metric)

    @property
    def error_of_part(self) -> str | None:
        """The held-out part whose loss is to be measured with its standard error, if there is one."""
        return None if self.overfit_metric is None else self.overfit_metric.removesuffix("_loss")

    def cost_of(self, value: float) -> float:
        """The metric's value as something that is to fall."""
        return -value if self.rises else value

    def check(self, measured: Collection[str], every: int) -> None:
        """Refuse rules about what is not measured."""
        if not self.measures:
            return
        for name, metric in (("metric", self.metric), ("overfit_metric", self.overfit_metric)):
            if metric is not None and metric not in measured:
                missing = ", which needs a [holdout]" if metric.startswith(("validation", "test")) else ""
                raise ConfigError(
                    f'stopping.{name} is "{metric}"{missing}. {did_you_mean(metric, measured)} '
                    "Hold rows out, or stop by another metric."
                )
        if self.overfit_metric is not None and f"{self.overfit_metric}_error" not in measured:
            raise ConfigError(
                f'stopping.overfit_metric is "{self.overfit_metric}", but this problem does not measure single rows, '
                "so the standard error is not known. Leave it out, and stop by stopping.metric."
            )
        if every == 0:
            raise ConfigError(
                "evaluation.every is 0, so stopping would never be decided; set it to at least 1, or stop by energy."
            )


SMALLEST_SCALE = 1e-3
"""Of the progress: where the best value is next to 0, an improvement need not be next to nothing."""

_REMEMBERED = (
    "best", "best_round", "without", "first", "kept", "kept_loss", "lowest", "lowest_error", "lowest_round", "above"
)  # fmt: skip


class StoppingMonitor:
    """Decides when the rules of a `Stopping` are met: keeps the best value so far and how long ago it was."""

    def __init__(self, rules: Stopping) -> None:
        self.rules = rules
        self._first = inf
        self._best = inf  # by as much as counts as an improvement
        self._kept = inf  # the metric of the model to keep
        self._kept_loss = inf  # and its loss on held-out rows
        self._lowest = inf  # loss on held-out rows
        self._lowest_error = 0.0
        self._lowest_round = 0
        self._above = 0
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
        if cost < self._best - max(rules.min_improvement, rules.min_progress * self._scale()):
            self._best, self._best_round, self._without = cost, round, 0
        else:
            self._without += 1
        if rules.target is not None and cost <= rules.cost_of(rules.target):
            return f"{rules.metric} is {value:.4g}: the target of {rules.target:g} is reached"
        overfit = self._overfit(metrics, round)
        if rules.patience is not None and self._without >= rules.patience:
            if cost - self._best > RISEN * (self._first - self._best) and rules.min_progress:
                best = f"{rules.cost_of(self._best):.4g} in round {self._best_round}"
                return (
                    f"not converged: {rules.metric} rose to {value:.4g} after its best, {best}. Where clients differ "
                    "much, less local work helps: --set strategy.work.steps=4, or a smaller rate (--lr)"
                )
            if not rules.min_progress:
                words = f"stopped early: {rules.metric} has not improved in {self._without} evaluations"
                return f"{words} (best {rules.cost_of(self._best):.4g}, in round {self._best_round})"
            share = f"{100 * rules.min_progress:g} %"
            words = f"converged: {rules.metric} improved by less than {share} in {self._without} evaluations"
            return f"{words}, since round {self._best_round} ({rules.cost_of(self._best):.4g})"
        return overfit

    def _scale(self) -> float:
        """What `min_progress` is a share of: what was gained, or the value itself where a bad start gains much more."""
        if not isfinite(self._best):
            return 0.0
        progress = self._first - self._best
        return min(progress, max(abs(self._best), SMALLEST_SCALE * progress))

    def _overfit(self, metrics: Mapping[str, float], round: int) -> str | None:
        """Note the loss on held-out rows. Returns why the run is to stop, or None."""
        rules = self.rules
        if rules.overfit_metric is None:
            return None
        loss = metrics[rules.overfit_metric]
        if loss < self._lowest:
            error = metrics[f"{rules.overfit_metric}_error"]
            error = error if isfinite(error) else inf  # of a single row it is not known: nothing is proven by that
            self._lowest, self._lowest_error, self._lowest_round = loss, error, round
        self._above = self._above + 1 if loss > self._lowest + self._lowest_error else 0
        if rules.patience is None or self._above < rules.patience:
            return None
        return (
            f"stopped early: {rules.overfit_metric} was above its lowest ({self._lowest:.4g}, in round "
            f"{self._lowest_round}) by more than its standard error in {self._above} evaluations"
        )

    def is_best(self, metrics: Mapping[str, float]) -> bool:
        """Whether the model of this evaluation, which was noted, is the one to keep so far."""
        rules = self.rules
        if rules.keep == "last":
            return False
        cost, limit = rules.cost_of(metrics[rules.metric]), self._lowest + self._lowest_error
        loss = 0.0 if rules.overfit_metric is None else metrics[rules.overfit_metric]
        if not loss <= limit:
            return False
        if not (cost < self._kept or self._kept_loss > limit):
            return False
        self._kept, self._kept_loss = cost, loss
        return True

    def spent(self, energy: float) -> str | None:
        """Why the run is to stop when this much energy was spent, or None."""
        limit = self.rules.energy
        if limit is None or energy < limit:
            return None
        return f"the energy budget of {limit:g} J is spent"

    def snapshot(self) -> dict[str, Any]:
        """The state that a checkpoint keeps."""
        numbers = {name: getattr(self, f"_{name}") for name in _REMEMBERED}
        return {name: value if isfinite(value) else None for name, value in numbers.items()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; those of earlier versions know fewer numbers."""
        for name in _REMEMBERED:
            if name in snapshot:
                setattr(self, f"_{name}", inf if snapshot[name] is None else snapshot[name])


def kept_row(rules: Stopping | None, evaluations: Mapping[str, Any]) -> int:
    """The row of a run's evaluations that measured the model it was left with."""
    rows = len(evaluations["round"])
    if rules is None or rules.keep == "last":
        return rows - 1
    monitor, kept = StoppingMonitor(rules), 0
    for row in range(rows):
        metrics = {name: float(values[row]) for name, values in evaluations.items()}
        monitor.reason(metrics, int(metrics["round"]))
        if monitor.is_best(metrics):
            kept = row
    return kept


def nothing_merged(updates: int, skipped: bool) -> str:
    """Why a run ends whose strategy drops, or whose clients skip, everything; its result advises what to do."""
    how = "skipped or dropped" if skipped else "dropped"
    return f"starved: the last {updates:,} updates in a row were {how} and none was merged, so the model stays as it is"
