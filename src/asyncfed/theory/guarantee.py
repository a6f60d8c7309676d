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

    `missing` are the conditions that fail, the step's aside. `largest_rate` is the largest learning rate for which
    the theorem would hold if nothing else were missing (None: there is none); an `open_limit` must be kept below, not
    just met. Where it `applies`, `distance[t]` bounds |x_t − x*| (for "the mean over runs": the root of the mean of its
    square) and `gap[t]` bounds F − F*, of the averaged model if `averaging`, its ratio of weights, is given.
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
