"""Arguments that a formula cannot take are refused here, with the name and value given, the limit and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asyncfed.core.errors import ConfigError

Curve = Any
"""A float where every argument was a number, an array of floats where one was an array."""


def in_range(
    name: str,
    value: ArrayLike,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    advice: str = "",
) -> Curve:
    """`value` as float or array of floats, or a ConfigError that says which limit it breaks, and `advice` if any.

    >>> in_range("smoothness", 4, above=0)
    4.0
    >>> in_range("learning_rate", -1, above=0)
    Traceback (most recent call last):
    ...
    asyncfed.core.errors.ConfigError: learning_rate is -1, but must be above 0.
    """
    numbers = as_numbers(name, value)
    held, words = np.isfinite(numbers), []
    for limit, holds, word in (
        (above, np.greater, "above"),
        (at_least, np.greater_equal, "at least"),
        (below, np.less, "below"),
        (at_most, np.less_equal, "at most"),
    ):
        if limit is not None:
            held &= holds(numbers, limit)
            words.append(f"{word} {limit:.6g}")
    refuse(name, value, ~held, " and ".join(words) or "finite", advice)
    return as_curve(numbers)


def whole(name: str, value: ArrayLike, *, at_least: int = 0, at_most: float | None = None, advice: str = "") -> Curve:
    """Like `in_range`, for counts.

    >>> whole("local_steps", 2.5)
    Traceback (most recent call last):
    ...
    asyncfed.core.errors.ConfigError: local_steps is 2.5, but must be a whole number.
    """
    numbers = np.asarray(in_range(name, value, at_least=at_least, at_most=at_most, advice=advice))
    refuse(name, value, numbers != np.floor(numbers), "a whole number")
    return as_curve(numbers)


def number(name: str, value: float, **limits: Any) -> float:
    """Like `in_range`, for what must be a single number.

    >>> number("smoothness", [1, 2], above=0)
    Traceback (most recent call last):
    ...
    asyncfed.core.errors.ConfigError: smoothness has shape (2,), but must be one number. Call once for each.
    """
    if np.ndim(value):
        raise ConfigError(f"{name} has shape {np.shape(value)}, but must be one number. Call once for each.")
    return float(in_range(name, value, **limits))


def count(name: str, value: float, **limits: Any) -> int:
    """Like `whole`, for what must be a single number."""
    number(name, value)
    return int(whole(name, value, **limits))


def cohort(num_clients: int, cohort_size: int) -> tuple[int, int]:
    """C ≥ 1 and 1 ≤ J ≤ C."""
    clients = count("num_clients", num_clients, at_least=1)
    size = count(
        "cohort_size",
        cohort_size,
        at_least=1,
        at_most=clients,
        advice="A cohort is drawn without replacement from num_clients.",
    )
    return clients, size


def curvature(smoothness: float, strong_convexity: float) -> tuple[float, float]:
    """0 < μ ≤ L as floats."""
    largest = number("smoothness", smoothness, above=0)
    smallest = number(
        "strong_convexity",
        strong_convexity,
        above=0,
        at_most=largest,
        advice="No loss is more convex than smooth, and without strong convexity these bounds say nothing.",
    )
    return largest, smallest


def as_numbers(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """`value` as an array of floats, or a ConfigError.

    >>> as_numbers("smoothness", "steep")
    Traceback (most recent call last):
    ...
    asyncfed.core.errors.ConfigError: smoothness is 'steep', but must be a number or an array of numbers.
    """
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} is {value!r}, but must be a number or an array of numbers.") from error


def refuse(name: str, value: ArrayLike, wrong: NDArray[np.bool_], limits: str, advice: str = "") -> None:
    """A ConfigError that shows the first wrong value as it was given, if there is one."""
    if np.any(wrong):
        given = np.asarray(value)
        shown = f"contains {given[wrong].flat[0]}" if given.ndim else f"is {given}"
        raise ConfigError(f"{name} {shown}, but must be {limits}.{' ' * bool(advice)}{advice}")


def as_curve(numbers: ArrayLike | NDArray[np.float64]) -> Curve:
    """A float for a single number, else the array."""
    array = np.asarray(numbers, dtype=float)
    return array if array.ndim else float(array)
