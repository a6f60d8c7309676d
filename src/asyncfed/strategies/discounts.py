"""How much an update counts when it is `staleness` versions old. Fresh is 0 and always counts 1."""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config


class NoDiscount(Config, tag_field="kind", tag="constant"):
    """`s(tau) = 1`."""

    def weight(self, staleness: int) -> float:
        return 1.0


class Polynomial(Config, tag_field="kind", tag="polynomial"):
    """`s(tau) = (1 + tau)**-power`, power >= 0.

    >>> Polynomial(power=0.5).weight(3)
    0.5
    """

    power: float = 0.5

    def __post_init__(self) -> None:
        if not (isfinite(self.power) and self.power >= 0):
            raise ConfigError(f"staleness power is {self.power}; it must be zero or positive.")

    def weight(self, staleness: int) -> float:
        return float((1 + staleness) ** -self.power)


class Hinge(Config, tag_field="kind", tag="hinge"):
    """`s(tau) = 1` up to `grace` versions, then `1 / (slope * (tau - grace) + 1)`.

    >>> [Hinge(slope=10, grace=4).weight(tau) for tau in (0, 4, 5)] == [1.0, 1.0, 1 / 11]
    True
    """

    slope: float = 10.0
    grace: int = 4

    def __post_init__(self) -> None:
        if not (isfinite(self.slope) and self.slope >= 0 and self.grace >= 0):
            raise ConfigError(f"hinge slope {self.slope} and grace {self.grace} must be zero or positive.")

    def weight(self, staleness: int) -> float:
        return 1.0 if staleness <= self.grace else 1.0 / (self.slope * (staleness - self.grace) + 1.0)


Discount: TypeAlias = NoDiscount | Polynomial | Hinge
