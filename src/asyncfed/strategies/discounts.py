"""How much an update counts when it is `staleness` versions old. Fresh is 0 and always counts 1."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar, Protocol, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.registry import declare_part, register


@runtime_checkable
class Discount(Protocol):
    """What a discount is: a frozen value with `weight(staleness)`, from 0 to 1, and 1 for a staleness of 0."""

    def weight(self, staleness: int) -> float: ...


declare_part("discount", Discount)


@register("discount")
class NoDiscount(Config, tag_field="kind", tag="constant"):
    """No discount: `s(tau) = 1`, however stale.

    >>> NoDiscount().weight(100)
    1.0
    """

    known_ahead: ClassVar[bool] = True
    """Follows from the staleness alone: a simulator may ask for any staleness at any time."""

    def weight(self, staleness: int) -> float:
        """What an update of this staleness counts."""
        return 1.0


@register("discount")
class Polynomial(Config, tag_field="kind", tag="polynomial"):
    """The polynomial discount: `s(tau) = (1 + tau)**-power`.

    Args:
        power: how fast it falls, 0 or more; 0 is no discount.

    >>> Polynomial(power=0.5).weight(3)
    0.5

    Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020.
    """

    known_ahead: ClassVar[bool] = True
    """Follows from the staleness alone: a simulator may ask for any staleness at any time."""

    power: float = 0.5

    def __post_init__(self) -> None:
        if not (isfinite(self.power) and self.power >= 0):
            raise ConfigError(f"staleness power is {self.power}; it must be zero or positive.")

    def weight(self, staleness: int) -> float:
        """What an update of this staleness counts."""
        return float((1 + staleness) ** -self.power)


@register("discount")
class Hinge(Config, tag_field="kind", tag="hinge"):
    """The hinge discount: `s(tau) = 1` up to `grace` versions, then `1 / (slope * (tau - grace) + 1)`.

    Args:
        slope: how fast it falls beyond the grace, 0 or more, per version.
        grace: up to so many versions count in full, 0 or more.

    >>> [Hinge(slope=10, grace=4).weight(tau) for tau in (0, 4, 5)] == [1.0, 1.0, 1 / 11]
    True

    Xie, Koyejo & Gupta, "Asynchronous Federated Optimization", OPT 2020.
    """

    known_ahead: ClassVar[bool] = True
    """Follows from the staleness alone: a simulator may ask for any staleness at any time."""

    slope: float = 10.0
    grace: int = 4

    def __post_init__(self) -> None:
        if not (isfinite(self.slope) and self.slope >= 0 and self.grace >= 0):
            raise ConfigError(f"hinge slope {self.slope} and grace {self.grace} must be zero or positive.")

    def weight(self, staleness: int) -> float:
        """What an update of this staleness counts."""
        return 1.0 if staleness <= self.grace else 1.0 / (self.slope * (staleness - self.grace) + 1.0)
