"""Rows like texts as bags of words: very many columns, few non-zeros in a row, each author with words of its own."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.clients import Clients
from asyncfed.data.data_source import DataRequest, PreparedData
from asyncfed.data.holdout import hold_out
from asyncfed.data.partition import even_sizes
from asyncfed.data.random_streams import keyed
from asyncfed.data.sparse_features import as_csr
from asyncfed.data.splits import IID
from asyncfed.data.table import float_dtype
from asyncfed.registry import register


@register("data")
class SparseText(Config, tag_field="kind", tag="sparse_text"):
    """Texts as bags of words, in sparse rows. Clients are authors, and each prefers other words.

    A word's rank r is drawn with probability proportional to r^(−exponent). Rank r is column r − 1 for all authors, but
    with probability `dialect` column (r − 1 + s_c) mod `num_features`, s_c being drawn for each author c. A row counts
    its words and is scaled to length 1. Targets are x·w + noise · N(0, 1) with weights w from N(0, 1), the same for all
    authors; for a classifier, the signs of that.

    Args:
        num_samples: rows of all clients together, at least 1 for each.
        num_features: columns, at least 1.
        words: words drawn for a row, at least 1; one that is drawn twice is one non-zero, so 56 give about 50.
        exponent: how much more frequent the first words are, 0 or more; 0: all alike.
        dialect: the share of an author's words that are its own, 0 to 1; 0: IID clients.
        noise: standard deviation of the noise, 0 or more.
    """

    num_samples: int = 20_000
    num_features: int = 100_000
    words: int = 56
    exponent: float = 1.0
    dialect: float = 0.5
    noise: float = 0.1

    def __post_init__(self) -> None:
        for name in ("num_samples", "num_features", "words"):
            if getattr(self, name) < 1:
                raise ConfigError(f"data.{name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("exponent", "noise"):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise ConfigError(f"data.{name} is {value}; it must be 0 or a positive number.")
        if not 0 <= self.dialect <= 1:
            raise ConfigError(f"data.dialect is {self.dialect}; it is a share, 0 to 1.")

    @property
    def names_clients(self) -> bool:
        """False: there are as many authors as the experiment has clients."""
        return False

    def prepare(self, request: DataRequest) -> PreparedData:
        """The authors with their rows."""
        if request.split != IID():
            raise ConfigError("split is set, but sparse_text draws each client's rows itself. Leave it out.")
        count = request.split_clients
        if self.num_samples < count:
            raise ConfigError(f"data.num_samples is {self.num_samples}; {count} clients need at least a row each.")
        sizes = even_sizes(self.num_samples, count)
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        x = self._draw_rows(np.repeat(np.arange(count), sizes), count, request.seed)
        response = x @ keyed(request.seed, "data.weights").standard_normal(self.num_features)
        response += self.noise * keyed(request.seed, "data.noise").standard_normal(self.num_samples)
        kind = float_dtype(request.dtype)
        y = np.where(response > 0, 1.0, -1.0) if request.labels else response
        names = tuple(f"author {client}" for client in range(count))
        clients = Clients(x.astype(kind), y.astype(kind), offsets, request.labels, names)
        if request.holdout is None:
            return PreparedData(clients)
        return PreparedData(*hold_out(clients, request.holdout.roles(offsets, request.seed)))

    def _draw_rows(self, authors: np.ndarray, count: int, seed: int) -> Any:
        """Counts of words, each row of length 1, as CSR in double precision."""
        from scipy import sparse  # when first needed: it takes a while to load

        shape = (self.num_samples, self.words)
        likely = np.cumsum(np.arange(1, self.num_features + 1, dtype=np.float64) ** -self.exponent)
        words = np.searchsorted(likely, likely[-1] * keyed(seed, "data.words").random(shape), side="right")
        shifts = keyed(seed, "data.dialects").integers(self.num_features, size=count)
        own = keyed(seed, "data.own_words").random(shape) < self.dialect
        words = (words + own * shifts[authors][:, None]) % self.num_features
        starts = np.arange(0, words.size + 1, self.words)
        drawn = sparse.csr_array((np.ones(words.size), words.ravel(), starts), (len(words), self.num_features))
        counts = as_csr(drawn, np.float64, "x")
        lengths = np.sqrt(np.add.reduceat(counts.data**2, counts.indptr[:-1]))
        counts.data /= np.repeat(lengths, np.diff(counts.indptr))
        return counts
