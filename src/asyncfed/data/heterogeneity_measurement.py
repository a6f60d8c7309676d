"""How far from IID the clients really are, compared with the skew that their split claims.

Each aspect in which clients may differ has one statistic, tested against the hypothesis that rows were assigned to
clients at random:

- sizes: chi-square of the sizes against equal shares (its classical p-value; rough below five rows a client);
- target: total variation of the labels, or Kolmogorov-Smirnov (KS) distance of the targets, from the pool;
- features: KS distance from the pool, the mean over features (20 drawn at random where there are more);
- concept: KS distance of what a pooled least-squares fit leaves over (residuals y - f(x), or the margins y f(x) of
  labels; 200 features at most). It detects another relation only as far as these differ, and where a plane fits badly,
  as it does labels, it also detects features or labels that differ.

All but sizes are permutation tests over at most 200 clients and about 20,000 rows; where there are more, the tests use
a random part (of 20 features and more 10,000 rows), and `notes` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.data.claimed_skew import SKEW_ASPECTS, ClaimedSkew, SkewAspect
from asyncfed.data.clients import Clients
from asyncfed.data.exchangeability import (
    Distance,
    kolmogorov_smirnov,
    mean_distance,
    permutation_test,
    total_variation,
)
from asyncfed.data.heterogeneity_report import HeterogeneityReport, SkewTest
from asyncfed.data.random_streams import keyed
from asyncfed.data.sparse_features import is_sparse, some_columns

MAX_CLIENTS = 200
MAX_ROWS = 20_000
MAX_CELLS = 200_000
"""Rows times features compared, but for `MAX_ROWS`: what the tests cost."""
MAX_FEATURES_COMPARED = 20
MAX_FEATURES_FITTED = 200


def measure_heterogeneity(clients: Clients, claimed_skew: ClaimedSkew = None, seed: int = 0) -> HeterogeneityReport:
    """Measure how different the clients' data are, and compare that with the skew that is claimed of them.

    Args:
        clients: the clients with their rows.
        claimed_skew: the aspects in which they are meant to differ; empty: IID; None: nothing is claimed.
        seed: the seed of permutations and subsamples, 0 or more.

    Returns:
        Sizes, a test of each aspect, and a verdict.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> alike = Clients.from_lists(rng.normal(size=(4, 30, 2)), rng.normal(size=(4, 30)))
    >>> measure_heterogeneity(alike).verdict
    'indistinguishable from IID'
    """
    for aspect in claimed_skew or ():
        if aspect not in SKEW_ASPECTS:
            raise ConfigError(f'claimed_skew names "{aspect}". {did_you_mean(aspect, SKEW_ASPECTS)}')
    sample, notes = _sample(clients, seed)
    target, features = _target_distance(sample), _features_distance(sample, seed)
    concept, untested = _concept_distance(sample, seed)
    sizes = clients.num_examples
    return HeterogeneityReport(
        num_clients=clients.num_clients,
        num_rows=clients.num_rows,
        smallest=int(sizes.min()),
        median=float(np.median(sizes)),
        largest=int(sizes.max()),
        gini=gini(sizes),
        tests=(
            _test_sizes(sizes),
            _test("target", "total variation" if clients.labels else "KS distance", target, sample, seed),
            _test("features", "mean KS distance", features, sample, seed),
            _test("concept", f"{'margin' if clients.labels else 'residual'} KS distance", concept, sample, seed),
        ),
        claimed_skew=None
        if claimed_skew is None
        else tuple(aspect for aspect in SKEW_ASPECTS if aspect in claimed_skew),
        notes=(*notes, *untested),
    )


def gini(sizes: np.ndarray) -> float:
    """The Gini coefficient: 0 when all sizes are equal, near 1 when one client has everything.

    >>> gini(np.array([5, 5, 5])), round(gini(np.array([1, 1, 98])), 2)
    (0.0, 0.65)
    """
    ordered = np.sort(sizes).astype(np.float64)
    count = len(ordered)
    return float((2 * np.arange(1, count + 1) - count - 1) @ ordered / (count * ordered.sum()))


@dataclass(frozen=True, eq=False)
class _Sample:
    """The rows of the permutation tests, client after client."""

    x: np.ndarray
    y: np.ndarray
    labels: bool
    sizes: np.ndarray
    owners: np.ndarray
    precision: float


def _sample(clients: Clients, seed: int) -> tuple[_Sample, list[str]]:
    """At most MAX_CLIENTS clients, thinned alike to about MAX_ROWS rows, at least one row each."""
    rng = keyed(seed, "heterogeneity.sample")
    chosen = np.arange(clients.num_clients)
    notes = []
    if clients.num_clients > MAX_CLIENTS:
        chosen = np.sort(rng.choice(clients.num_clients, MAX_CLIENTS, replace=False))
        notes.append(f"tests use {MAX_CLIENTS} of {clients.num_clients} clients, drawn at random")
    sizes = clients.num_examples[chosen]
    total = int(sizes.sum())
    kept = sizes
    limit = min(MAX_ROWS, MAX_CELLS // min(clients.num_features, MAX_FEATURES_COMPARED))
    if total > MAX_ROWS:
        kept = np.maximum(1, sizes * limit // total)
        notes.append(f"tests use {kept.sum()} of these clients' {total} rows, drawn at random")
    rows = np.concatenate(
        [
            start + (np.arange(size) if keep == size else np.sort(rng.choice(size, keep, replace=False)))
            for start, size, keep in zip(clients.offsets[chosen], sizes, kept, strict=True)
        ]
    )
    # 16-bit owners are sorted by radix, which the permutation tests do thousands of times.
    owners = np.repeat(np.arange(len(chosen), dtype=np.int16), kept)
    x, y = clients.x[rows], clients.y[rows].astype(np.float64)
    if is_sparse(x):
        columns = some_columns(x, MAX_FEATURES_COMPARED, keyed(seed, "heterogeneity.sparse_columns"))
        notes.append(f"tests use {len(columns)} of {x.shape[1]} columns, drawn by how many non-zeros they have")
        x = x[:, columns].toarray()
    x = x.astype(np.float64)
    return _Sample(x, y, clients.labels, kept, owners, float(np.finfo(clients.x.dtype).eps)), notes


def _test_sizes(sizes: np.ndarray) -> SkewTest:
    from scipy.special import chdtrc  # when first needed: it takes a while to load

    share = sizes.sum() / len(sizes)
    statistic = float(((sizes - share) ** 2).sum() / share)
    freedom = len(sizes) - 1
    p_value = float(chdtrc(freedom, statistic)) if freedom else 1.0
    return SkewTest("sizes", "chi-square", statistic, float(freedom), p_value)


def _test(aspect: SkewAspect, measure: str, distance: Distance, sample: _Sample, seed: int) -> SkewTest:
    rng = keyed(seed, f"heterogeneity.{aspect}")
    return SkewTest(aspect, measure, *permutation_test(distance, sample.owners, rng))


def _target_distance(sample: _Sample) -> Distance:
    if sample.labels:
        return total_variation(sample.y > 0, sample.sizes)
    return kolmogorov_smirnov(sample.y, sample.sizes)


def _features_distance(sample: _Sample, seed: int) -> Distance:
    columns = _some_columns(sample, MAX_FEATURES_COMPARED, seed)
    return mean_distance([kolmogorov_smirnov(sample.x[:, column], sample.sizes) for column in columns])


def _concept_distance(sample: _Sample, seed: int) -> tuple[Distance, list[str]]:
    """The distance of the fit's residuals, and a note where there are too few rows for residuals to mean anything."""
    columns = _some_columns(sample, MAX_FEATURES_FITTED, seed)
    design = np.column_stack([sample.x[:, columns], np.ones(len(sample.y))])
    if len(design) < 2 * design.shape[1]:
        note = f"concept is untested: {len(design)} rows are too few for a fit of {design.shape[1]} parameters"
        return lambda owners: 0.0, [note]
    fitted = design @ np.linalg.lstsq(design, sample.y, rcond=None)[0]
    left_over = sample.y * fitted if sample.labels else sample.y - fitted
    # Of an exact linear law only rounding is left over, and rounding depends on the features.
    rounding = 64 * sample.precision * np.abs(sample.y).max()
    left_over[np.abs(left_over) <= rounding] = 0.0
    return kolmogorov_smirnov(left_over, sample.sizes), []


def _some_columns(sample: _Sample, limit: int, seed: int) -> np.ndarray:
    count = sample.x.shape[1]
    if count <= limit:
        return np.arange(count)
    return np.sort(keyed(seed, "heterogeneity.columns").choice(count, limit, replace=False))
