"""The paper's two synthetic data sets, at any size.

Both draw features uniformly from [low, high) and weights from [weight_low, weight_high). They differ in what a target
is.
"""

from __future__ import annotations

from math import isfinite
from typing import TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.column_sums import weighted_columns
from asyncfed.data.preparation import DataRequest, PreparedData, prepare_table
from asyncfed.data.random_streams import keyed
from asyncfed.data.table import Dtype, Table, float_dtype


class PaperRegression(Config, tag_field="kind", tag="paper_regression"):
    """A noisy linear law: `y = x . w + bias + noise * N(0, 1)`.

    >>> table = PaperRegression(num_samples=4, num_features=2).generate(seed=1)
    >>> table.x.shape, table.labels
    ((4, 2), False)
    """

    num_samples: int = 2000
    num_features: int = 10
    low: float = -5.0
    high: float = 5.0
    weight_low: float = 2.0
    weight_high: float = 4.0
    bias: float = 5.0
    noise: float = 0.2

    def __post_init__(self) -> None:
        _check_design(self)
        if not (isfinite(self.noise) and self.noise >= 0):
            raise ConfigError(f"data.noise is {self.noise}; a standard deviation must be 0 or a positive number.")

    def true_params(self, seed: int) -> np.ndarray:
        """The weights, then the bias: shape (num_features + 1,)."""
        return _law(self, seed)

    def generate(self, seed: int, dtype: Dtype = "float64") -> Table:
        """The table of a seed, drawn in `dtype` itself (so float32 data are other numbers, not rounded ones)."""
        x, y = _features_and_response(self, seed, dtype)
        if self.noise > 0:
            noise = keyed(seed, "data.noise").standard_normal(len(y), float_dtype(dtype))
            noise *= noise.dtype.type(self.noise)
            y += noise
        return Table(x, y, labels=False)

    @property
    def names_clients(self) -> bool:
        """Whether the data say who owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        return prepare_table(self.generate(request.seed, request.dtype), request)


class PaperClassification(Config, tag_field="kind", tag="paper_classification"):
    """Two classes a plane separates: the label is +1 where `x . w + bias > 0`, else -1.

    >>> table = PaperClassification(num_samples=4, num_features=2).generate(seed=1)
    >>> sorted(set(table.y.tolist())) in ([-1.0], [1.0], [-1.0, 1.0])
    True
    """

    num_samples: int = 2000
    num_features: int = 10
    low: float = -5.0
    high: float = 5.0
    weight_low: float = 2.0
    weight_high: float = 4.0
    bias: float = 5.0

    def __post_init__(self) -> None:
        _check_design(self)

    def true_params(self, seed: int) -> np.ndarray:
        """The weights, then the bias: shape (num_features + 1,)."""
        return _law(self, seed)

    def generate(self, seed: int, dtype: Dtype = "float64") -> Table:
        """The table of a seed, drawn in `dtype` itself (so float32 data are other numbers, not rounded ones)."""
        x, logits = _features_and_response(self, seed, dtype)
        return Table(x, np.where(logits > 0, 1, -1).astype(x.dtype), labels=True)

    @property
    def names_clients(self) -> bool:
        """Whether the data say who owns which row."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        return prepare_table(self.generate(request.seed, request.dtype), request)


Generator: TypeAlias = PaperRegression | PaperClassification


def _check_design(data: Generator) -> None:
    for name in ("num_samples", "num_features"):
        if getattr(data, name) < 1:
            raise ConfigError(f"data.{name} is {getattr(data, name)}; it must be at least 1.")
    for name in ("low", "high", "weight_low", "weight_high", "bias"):
        if not isfinite(getattr(data, name)):
            raise ConfigError(f"data.{name} is {getattr(data, name)}; it must be a finite number.")
    if data.low >= data.high:
        raise ConfigError(f"data.low is {data.low} and data.high {data.high}; low must be below high.")
    if data.weight_low > data.weight_high:
        raise ConfigError(
            f"data.weight_low is {data.weight_low} and data.weight_high {data.weight_high}; low may not exceed high."
        )


def _law(data: Generator, seed: int) -> np.ndarray:
    weights = keyed(seed, "data.weights").uniform(data.weight_low, data.weight_high, data.num_features)
    return np.append(weights, data.bias)


def _features_and_response(data: Generator, seed: int, dtype: Dtype) -> tuple[np.ndarray, np.ndarray]:
    """x and `x . w + bias`. x is scaled where it was drawn: at a million clients a second copy would not fit."""
    kind = float_dtype(dtype)
    x = keyed(seed, "data.features").random((data.num_samples, data.num_features), kind)
    x *= kind.type(data.high - data.low)
    x += kind.type(data.low)
    params = _law(data, seed)
    response = weighted_columns(x, params[:-1])
    response += kind.type(params[-1])
    return x, response
