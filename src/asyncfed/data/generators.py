"""The paper's two synthetic data sets, at any size.

Both draw features uniformly from [low, high) and weights from [weight_low, weight_high). They differ in what a target
is.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.column_sums import weighted_columns
from asyncfed.data.data_source import DataRequest, PreparedData
from asyncfed.data.preparation import prepare_table
from asyncfed.data.random_streams import keyed
from asyncfed.data.table import Dtype, Table, float_dtype
from asyncfed.registry import register


class _UniformDesign(Config):
    """What both data sets share: uniform features, and a linear response of uniform weights."""

    num_samples: int = 2000
    num_features: int = 10
    low: float = -5.0
    high: float = 5.0
    weight_low: float = 2.0
    weight_high: float = 4.0
    bias: float = 5.0

    def __post_init__(self) -> None:
        for name in ("num_samples", "num_features"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("low", "high", "weight_low", "weight_high", "bias"):
            if not isfinite(getattr(self, name)):
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be a finite number.")
        if self.low >= self.high:
            raise ConfigError(f"data.low is {self.low} and data.high {self.high}; low must be below high.")
        if self.weight_low > self.weight_high:
            raise ConfigError(
                f"data.weight_low is {self.weight_low} and data.weight_high {self.weight_high}; low may not exceed "
                "high."
            )

    @property
    def names_clients(self) -> bool:
        """False: the split says which client owns which row."""
        return False

    def true_params(self, seed: int) -> np.ndarray:
        """The weights, then the bias: shape (num_features + 1,)."""
        weights = keyed(seed, "data.weights").uniform(self.weight_low, self.weight_high, self.num_features)
        return np.append(weights, self.bias)

    def draw_features(self, seed: int, dtype: Dtype) -> tuple[np.ndarray, np.ndarray]:
        """x and `x . w + bias`. x is scaled where it was drawn: at a million clients a second copy would not fit."""
        kind = float_dtype(dtype)
        x = keyed(seed, "data.features").random((self.num_samples, self.num_features), kind)
        x *= kind.type(self.high - self.low)
        x += kind.type(self.low)
        params = self.true_params(seed)
        response = weighted_columns(x, params[:-1])
        response += kind.type(params[-1])
        return x, response


@register("data")
class PaperRegression(_UniformDesign, tag_field="kind", tag="paper_regression"):
    """A noisy linear law, the paper's data for regression: `y = x . w + bias + noise * N(0, 1)`.

    Args:
        num_samples: rows of all clients together, at least 1.
        num_features: features of a row, at least 1.
        low, high: features are drawn uniformly from [low, high), low below high.
        weight_low, weight_high: weights are drawn uniformly from [weight_low, weight_high).
        bias: the response where all features are 0, finite.
        noise: standard deviation of the noise, 0 or more.

    >>> table = PaperRegression(num_samples=4, num_features=2).generate(seed=1)
    >>> table.x.shape, table.labels
    ((4, 2), False)
    """

    noise: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isfinite(self.noise) and self.noise >= 0):
            raise ConfigError(f"data.noise is {self.noise}; a standard deviation must be 0 or a positive number.")

    def generate(self, seed: int, dtype: Dtype = "float64") -> Table:
        """The table of a seed, drawn in `dtype` itself (so float32 data are other numbers, not rounded ones)."""
        x, y = self.draw_features(seed, dtype)
        if self.noise > 0:
            noise = keyed(seed, "data.noise").standard_normal(len(y), float_dtype(dtype))
            noise *= noise.dtype.type(self.noise)
            y += noise
        return Table(x, y, labels=False)

    def prepare(self, request: DataRequest) -> PreparedData:
        """The table of the request's seed, its rows assigned by the split."""
        return prepare_table(self.generate(request.seed, request.dtype), request)


@register("data")
class PaperClassification(_UniformDesign, tag_field="kind", tag="paper_classification"):
    """Two classes that a plane separates, the paper's data for the SVM: +1 where `x . w + bias > 0`, else -1.

    Args:
        num_samples: rows of all clients together, at least 1.
        num_features: features of a row, at least 1.
        low, high: features are drawn uniformly from [low, high), low below high.
        weight_low, weight_high: weights are drawn uniformly from [weight_low, weight_high).
        bias: the response where all features are 0, finite.

    >>> table = PaperClassification(num_samples=4, num_features=2).generate(seed=1)
    >>> sorted(set(table.y.tolist())) in ([-1.0], [1.0], [-1.0, 1.0])
    True
    """

    def generate(self, seed: int, dtype: Dtype = "float64") -> Table:
        """The table of a seed, drawn in `dtype` itself (so float32 data are other numbers, not rounded ones)."""
        x, response = self.draw_features(seed, dtype)
        return Table(x, np.where(response > 0, 1, -1).astype(x.dtype), labels=True)

    def prepare(self, request: DataRequest) -> PreparedData:
        """The table of the request's seed, its rows assigned by the split."""
        return prepare_table(self.generate(request.seed, request.dtype), request)
