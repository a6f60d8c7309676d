"""What one theorem says about a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

Curve = NDArray[Any]
Covers = Literal["the mean over runs", "every run"]
ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class Guarantee:
    """What one theorem says about a run.

    Attributes:
        name: the theorem's name.
        says: what it is about, in a few words.
        covers: "the mean over runs", which a single run may exceed, or "every run".
        missing: the conditions that fail, except that on the step.
        rate: the run's own learning rate, above 0.
        largest_rate: the largest learning rate for which the theorem would hold if nothing else were missing; None if
            there is none.
        distance: `distance[t]` bounds |x_t − x*|, not squared; for "the mean over runs" the root of the mean of its
            square. None where the theorem does not apply or has none.
        gap: `gap[t]` bounds F − F*, of the averaged model if `averaging` is given.
        averaging: the ratio of weights of the averaged model.
        open_limit: the rate must be below `largest_rate`, not equal to it.
    """

    name: str
    says: str
    covers: Covers
    missing: tuple[str, ...]
    rate: float
    largest_rate: float | None
    distance: Curve | None = None
    gap: Curve | None = None
    averaging: float | None = None
    open_limit: bool = False

    @property
    def advised_rate(self) -> float | None:
        """A rate to run with: the largest one, or half of a limit that itself is not allowed."""
        if self.largest_rate is None:
            return None
        return self.largest_rate / 2 if self.open_limit else self.largest_rate

    @property
    def step_factor(self) -> float | None:
        """How many times the run's rate exceeds the largest admissible one; up to 1 it is admissible."""
        return None if self.largest_rate is None else self.rate / self.largest_rate

    @property
    def applies(self) -> bool:
        """Whether the theorem covers the run as it is: nothing is missing, and the rate is small enough."""
        factor = self.step_factor
        if factor is None:
            return not self.missing
        return not self.missing and (factor < 1.0 if self.open_limit else factor <= ROUNDING)

    @property
    def obstacles(self) -> tuple[str, ...]:
        """Why it does not apply; the step comes last, for it is the easiest to change."""
        factor = self.step_factor
        if self.applies or factor is None or factor <= 1.0:
            return self.missing
        return (*self.missing, f"the rate {self.rate:.3g} is {factor:.4g} times too large")
