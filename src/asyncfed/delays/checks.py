"""The limits that the numbers of a delay description must keep, each refused with the value and the limit."""

from __future__ import annotations

from math import isfinite
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET


def is_finite_number(value: Any) -> bool:
    """True for an int or a float that is neither NaN nor infinite."""
    return isinstance(value, int | float) and isfinite(value)


def require_non_negative(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not (is_finite_number(value) and value >= 0):
        raise ConfigError(f"{name} is {value!r}; it must be a finite number, zero or more.")


def require_positive(name: str, value: Any, otherwise: str = "") -> None:
    """Refuse what is not a finite number > 0; `otherwise` says what to write instead of zero."""
    if not (is_finite_number(value) and value > 0):
        raise ConfigError(f"{name} is {value!r}; it must be a finite number above zero.{otherwise and ' ' + otherwise}")


def require_positive_or_unset(name: str, value: Any) -> None:
    """Refuse what is neither UNSET nor a finite number > 0."""
    if value is not UNSET:
        require_positive(name, value, "Leave it out for no limit.")


def require_probability(name: str, value: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    if not (is_finite_number(value) and 0 <= value <= 1):
        raise ConfigError(f"{name} is {value!r}; it must be a number from 0 to 1.")
