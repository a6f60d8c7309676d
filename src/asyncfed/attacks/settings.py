"""Checks of the numbers that attacks are given."""

from __future__ import annotations

from math import isfinite

from asyncfed.core.errors import ConfigError


def require_positive(name: str, value: float) -> None:
    """Refuse what is not a finite number above 0."""
    if not (isfinite(value) and value > 0):
        raise ConfigError(f"{name} is {value}; it must be a positive number.")


def require_finite(name: str, value: float) -> None:
    """Refuse what is not finite."""
    if not isfinite(value):
        raise ConfigError(f"{name} is {value}; it must be a finite number.")


def require_share(name: str, value: float) -> None:
    """Refuse what is not above 0 and at most 1."""
    if not 0 < value <= 1:
        raise ConfigError(f"{name} is {value}; it must be above 0 and at most 1.")
