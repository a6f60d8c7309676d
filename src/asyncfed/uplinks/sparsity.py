"""How many entries a share of the parameters is."""

from __future__ import annotations

from math import ceil

from asyncfed.core.errors import ConfigError


def check_fraction(value: float) -> None:
    """Refuse a share that is none."""
    if not 0 < value <= 1:
        raise ConfigError(f"uplink.fraction is {value}; it must be above 0 and at most 1.")


def count_entries(fraction: float, num_params: int) -> int:
    """k: the share of so many parameters, rounded up; at least 1."""
    return min(num_params, max(1, ceil(fraction * num_params)))
