"""What a server optimiser is, and what those have in common that divide by the root of a second moment."""

from __future__ import annotations

from abc import abstractmethod
from math import isfinite
from typing import Protocol, runtime_checkable

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.registry import declare_part
from asyncfed.rules.protocol import Arrays


@runtime_checkable
class Optimiser(Protocol):
    """How the server's step follows from the mean change D of its clients. A frozen value with a memory in and out.

    | method | answers with |
    |---|---|
    | `init(params)` | the memory before the first merge: named arrays |
    | `update(memory, change)` | what is added to the model, and the memory after it |

    `change` may not be changed in place; the arrays of `memory` may be.
    """

    def init(self, params: np.ndarray) -> Arrays: ...
    def update(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, Arrays]: ...


declare_part("optimiser", Optimiser)


class Adaptive(Config):
    """The settings and the step of Adam, Yogi and Adagrad; how the second moment v moves is their own.

    m <- b1 m + (1 - b1) D;    v <- second_moment(v, D^2);    x <- x + lr m / (sqrt(v) + eps)
    """

    lr: float = 0.1
    b1: float = 0.9
    eps: float = 1e-3
    v0: float | UnsetType = UNSET

    def __post_init__(self) -> None:
        for name in ("lr", "eps"):
            check_positive(name, getattr(self, name))
        check_fraction("b1", self.b1)
        if self.v0 is not UNSET and not (isfinite(self.v0) and self.v0 >= 0):
            raise ConfigError(f"optimiser.v0 is {self.v0}; it must be 0 or a positive number, or left out for eps**2.")

    def init(self, params: np.ndarray) -> Arrays:
        """Moments of the model's shape: m = 0, v = v0."""
        v0 = self.eps**2 if self.v0 is UNSET else self.v0
        return {"m": np.zeros_like(params), "v": np.full_like(params, v0)}

    def update(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, Arrays]:
        """The step, after both moments have moved."""
        m, v = self.moments(memory, change)
        return self.step(m, v), {"m": m, "v": v}

    def moments(self, memory: Arrays, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """m and v after this change."""
        m = self.b1 * memory["m"] + (1.0 - self.b1) * change
        return m, self.second_moment(memory["v"], change * change)

    def step(self, m: np.ndarray, v: np.ndarray) -> np.ndarray:
        """What these moments add to the model."""
        step: np.ndarray = self.lr * m / (np.sqrt(v) + self.eps)
        return step

    @abstractmethod
    def second_moment(self, v: np.ndarray, square: np.ndarray) -> np.ndarray:
        """v after a change with these squares."""


def check_positive(name: str, value: float) -> None:
    """Refuse a setting of an optimiser that must be above 0."""
    if not (isfinite(value) and value > 0):
        raise ConfigError(f"optimiser.{name} is {value}; it must be a positive number.")


def check_fraction(name: str, value: float) -> None:
    """Refuse a setting of an optimiser that must be from 0 to below 1."""
    if not 0 <= value < 1:
        raise ConfigError(f"optimiser.{name} is {value}; it must be at least 0 and below 1.")
