"""Splits: which client owns which row of a table, and in which aspects a split claims to make clients differ."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.record import Config
from asyncfed.data.claimed_skew import ClaimedSkew
from asyncfed.data.column_sums import column_moments, weighted_columns
from asyncfed.data.concept_shift import flip_labels, shift_response
from asyncfed.data.partition import assign_by_dirichlet, assign_evenly, block_owners, even_sizes, quantile_bins
from asyncfed.data.random_streams import keyed
from asyncfed.data.sparse_features import require_dense
from asyncfed.data.split_protocol import Assignment
from asyncfed.data.table import Table
from asyncfed.registry import register

CONCENTRATION_LIMITS = (1e-6, 1e6)
PUBLISHED_DRAWS_AT_ONCE = 1 << 20


@register("split")
class IID(Config, tag_field="kind", tag="iid"):
    """Rows assigned at random, sizes as equal as possible.

    >>> table = Table.from_arrays([[1.0], [2.0], [3.0]], [10, 20, 30])
    >>> np.bincount(IID().assign(table, 2, seed=0).client_of_row)
    array([2, 1])
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """None of the aspects: IID clients."""
        return frozenset()

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row."""
        count = _check_clients(table, num_clients, 1)
        return Assignment(assign_evenly(table.num_rows, count, keyed(seed, "split.deal")), table, count)


@register("split")
class InOrder(Config, tag_field="kind", tag="in_order"):
    """Consecutive blocks of rows, sizes as equal as possible, and nothing moved: packing it copies nothing.

    IID exactly when the order of the rows says nothing about them, as in generated data.

    >>> table = Table.from_arrays([[1.0], [2.0], [3.0]], [10, 20, 30])
    >>> InOrder().assign(table, 2, seed=0).client_of_row
    array([0, 0, 1], dtype=int32)
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """None of the aspects: IID clients."""
        return frozenset()

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row; the seed does not matter."""
        count = _check_clients(table, num_clients, 1)
        return Assignment(block_owners(even_sizes(table.num_rows, count)), table, count)


class _DirichletSplit(Config):
    """What splits by Dirichlet shares of all rows or of each label have in common."""

    concentration: float = 0.5
    min_size: int = 1

    def __post_init__(self) -> None:
        _check_shares(self.concentration, self.min_size)


class _BinnedDirichletSplit(Config):
    """What splits by Dirichlet shares of quantile bins have in common."""

    concentration: float = 0.5
    bins: int = 10
    min_size: int = 1

    def __post_init__(self) -> None:
        _check_shares(self.concentration, self.min_size)
        if self.bins < 2:
            raise ConfigError(f"split.bins is {self.bins}; clients can only differ over at least 2 bins.")


@register("split")
class LabelDirichlet(_DirichletSplit, tag_field="kind", tag="label_dirichlet"):
    """For each label, the clients' shares of its rows are one draw of `Dirichlet(concentration, ...)`.

    Reference: Yurochkin et al., "Bayesian nonparametric federated learning of neural networks", ICML 2019, section 4.

    Args:
        concentration: 1e-6 to 1e6; 0.1 gives most clients a single label, 100 is all but IID.
        min_size: the least rows of a client, at least 1.
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The target."""
        return frozenset({"target"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row of a table with labels."""
        if not table.labels:
            raise ConfigError(
                'split.kind "label_dirichlet" needs labels, but this table holds targets to regress; '
                'use "quantile_dirichlet", which bins them.'
            )
        bins = (table.y > 0).astype(np.int64)
        return _assign_bins(table, bins, "the labels are", num_clients, self.concentration, self.min_size, seed)


@register("split")
class QuantileDirichlet(_BinnedDirichletSplit, tag_field="kind", tag="quantile_dirichlet"):
    """`LabelDirichlet` for regression: the targets' quantile bins take the place of labels.

    Args:
        concentration: 1e-6 to 1e6; the smaller, the fewer bins a client has rows of.
        bins: quantile bins of the target, at least 2.
        min_size: the least rows of a client, at least 1.
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The target."""
        return frozenset({"target"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row."""
        bins = quantile_bins(table.y, self.bins)
        return _assign_bins(table, bins, "the targets are", num_clients, self.concentration, self.min_size, seed)


@register("split")
class QuantitySkew(_DirichletSplit, tag_field="kind", tag="quantity_skew"):
    """Random rows, but the clients' shares of them are one draw of `Dirichlet(concentration, ...)`.

    Args:
        concentration: 1e-6 to 1e6; the smaller, the more the sizes differ.
        min_size: the least rows of a client, at least 1.
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The sizes."""
        return frozenset({"sizes"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row."""
        count = _check_clients(table, num_clients, self.min_size)
        one_bin = np.zeros(table.num_rows, np.int64)
        rng = keyed(seed, "split.deal")
        owners = assign_by_dirichlet(one_bin, count, self.concentration, self.min_size, rng)
        return Assignment(owners, table, count)


@register("split")
class CovariateShift(_BinnedDirichletSplit, tag_field="kind", tag="covariate_shift"):
    """Dirichlet shares of the quantile bins of `g . z`: g a random direction, z the standardised features.

    Args:
        concentration: 1e-6 to 1e6; the smaller, the fewer bins a client has rows of.
        bins: quantile bins of `g . z`, at least 2.
        min_size: the least rows of a client, at least 1.
    """

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The features."""
        return frozenset({"features"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row."""
        require_dense(table.x, "The split covariate_shift")
        _, spreads = column_moments(table.x)
        direction = keyed(seed, "split.direction").standard_normal(table.num_features)
        weights = np.divide(direction, spreads, out=np.zeros_like(spreads), where=spreads > 0)
        bins = quantile_bins(weighted_columns(table.x, weights), self.bins)
        return _assign_bins(table, bins, "the rows of x are", num_clients, self.concentration, self.min_size, seed)


@register("split")
class ConceptShift(Config, tag_field="kind", tag="concept_shift"):
    """IID rows, but for a fraction of the clients (at least one) the same features mean another target.

    Regression: `y += strength * std(y) * (u_c . z)`, u_c a random unit vector of the client, z the standardised
    features. Classification: each label is flipped with probability `strength`.

    Args:
        fraction: the fraction of the clients with another relation, above 0 and at most 1; flipping every client's
            labels would make them alike again.
        strength: above 0, and at most 1 with labels: 0.5 makes them noise, 1 turns the relation round.
    """

    fraction: float = 0.3
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ConfigError(f"split.fraction is {self.fraction}; it must be above 0 and at most 1.")
        if not (isfinite(self.strength) and self.strength > 0):
            raise ConfigError(f'split.strength is {self.strength}; it must be a positive number. For none, use "iid".')

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The concept: what the features say about the target."""
        return frozenset({"concept"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row, and a table with the targets of some clients changed."""
        count = _check_clients(table, num_clients, 1)
        owners = assign_evenly(table.num_rows, count, keyed(seed, "split.deal"))
        rng = keyed(seed, "split.concept")
        shifted = np.zeros(count, bool)
        shifted[rng.permutation(count)[: max(1, round(self.fraction * count))]] = True
        if table.labels and self.strength > 1:
            raise ConfigError(
                f"split.strength is {self.strength}; with labels it is the probability of a flip, at most 1."
            )
        shift = flip_labels if table.labels else shift_response
        y = shift(table, owners, shifted, self.strength, rng)
        return Assignment(owners, replace(table, y=y), count)


@register("split")
class ByColumn(Config, tag_field="kind", tag="by_column"):
    """One client per distinct value of a feature column (a hospital, a user), in increasing order of the values.

    The number of clients is that of the distinct values: set `num_clients` to it, or leave it out.

    Args:
        column: the column's number, counted from 0.
        drop: True leaves that column out of the features.
    """

    column: int
    drop: bool = True

    def __post_init__(self) -> None:
        if self.column < 0:
            raise ConfigError(f"split.column is {self.column}; columns are counted from 0.")

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """None: clients differ as the data have it."""
        return None

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row; the seed does not matter."""
        require_dense(table.x, "The split by_column")
        if self.column >= table.num_features:
            raise ConfigError(f"split.column is {self.column}, but x has {table.num_features} columns, counted from 0.")
        values, owners = np.unique(table.x[:, self.column], return_inverse=True)
        if num_clients not in (None, len(values)):
            raise ConfigError(
                f"num_clients is {num_clients}, but column {self.column} has {len(values)} distinct values; "
                "leave num_clients out, or merge values until they agree."
            )
        if self.drop:
            if table.num_features == 1:
                raise ConfigError(f"Column {self.column} is the only feature; set split.drop = false to keep it.")
            table = replace(table, x=np.delete(table.x, self.column, axis=1))
        return Assignment(owners.ravel().astype(np.int32), table, len(values))


@register("split")
class Published(Config, tag_field="kind", tag="published"):
    """The published scripts' split: one `Dirichlet(concentration, ...)` vector PER ROW, the row going to its argmax.

    It was announced as Dirichlet non-IID. By symmetry every client is equally likely for every row, whatever the
    concentration and the target: it is a uniform random assignment. Sizes vary as in a multinomial draw, and a
    client may be left without rows. Costs rows x clients draws.

    Args:
        concentration: 1e-6 to 1e6; it makes no difference.
    """

    concentration: float = 0.5

    def __post_init__(self) -> None:
        _check_shares(self.concentration, 1)

    @property
    def claimed_skew(self) -> ClaimedSkew:
        """The target, as the publication says."""
        return frozenset({"target"})

    def assign(self, table: Table, num_clients: int | None, seed: int) -> Assignment:
        """The owner of every row."""
        count = _check_clients(table, num_clients, 1)
        rng = keyed(seed, "split.deal")
        owners = np.empty(table.num_rows, np.int32)
        step = max(1, PUBLISHED_DRAWS_AT_ONCE // count)
        for start in range(0, len(owners), step):
            block = owners[start : start + step]
            block[:] = rng.dirichlet(np.full(count, self.concentration), len(block)).argmax(axis=1)
        return Assignment(owners, table, count)


def _assign_bins(
    table: Table,
    bin_of_row: np.ndarray,
    what_is: str,
    num_clients: int | None,
    concentration: float,
    min_size: int,
    seed: int,
) -> Assignment:
    """Dirichlet shares of at least two bins."""
    count = _check_clients(table, num_clients, min_size)
    if bool((bin_of_row == bin_of_row[0]).all()):
        raise DataError(
            f"{what_is.capitalize()} all alike, so clients cannot differ in them. "
            'Use other data, or "quantity_skew" for clients that differ in size alone.'
        )
    owners = assign_by_dirichlet(bin_of_row, count, concentration, min_size, keyed(seed, "split.deal"))
    return Assignment(owners, table, count)


def _check_clients(table: Table, num_clients: int | None, min_size: int) -> int:
    """The number of clients; refused if there are too few rows for them."""
    if num_clients is None:
        raise ConfigError('num_clients is missing; only the split "by_column" can read it from the data.')
    if num_clients < 1:
        raise ConfigError(f"num_clients is {num_clients}; there must be at least 1.")
    if num_clients * min_size > table.num_rows:
        raise ConfigError(
            f"{num_clients} clients of at least {min_size} row(s) need {num_clients * min_size} rows, "
            f"but there are {table.num_rows}. Use fewer clients, more rows or a smaller min_size."
        )
    return num_clients


def _check_shares(concentration: float, min_size: int) -> None:
    low, high = CONCENTRATION_LIMITS
    if not low <= concentration <= high:
        raise ConfigError(
            f"split.concentration is {concentration}; it must lie between {low:g} (one client takes all) and {high:g} "
            '(even shares). For IID clients, use "iid".'
        )
    if min_size < 1:
        raise ConfigError(f"split.min_size is {min_size}; every client needs at least 1 row.")
