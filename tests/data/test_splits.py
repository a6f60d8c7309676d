import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.record import from_plain, to_plain
from asyncfed.data import (
    IID,
    ByColumn,
    Clients,
    ConceptShift,
    CovariateShift,
    InOrder,
    LabelDirichlet,
    PaperClassification,
    PaperRegression,
    Published,
    QuantileDirichlet,
    QuantitySkew,
    Split,
    Table,
)
from asyncfed.data.random_streams import keyed

ALL = [
    IID(),
    InOrder(),
    LabelDirichlet(concentration=0.3, min_size=2),
    QuantileDirichlet(bins=4),
    QuantitySkew(min_size=3),
    CovariateShift(),
    ConceptShift(fraction=0.5),
    ByColumn(column=1),
    Published(),
]


@pytest.fixture(scope="module")
def regression():
    return PaperRegression(num_samples=600, num_features=4).generate(5)


@pytest.fixture(scope="module")
def classification():
    return PaperClassification(num_samples=600, num_features=4).generate(5)


def sizes_of(assignment):
    return np.bincount(assignment.client_of_row, minlength=assignment.num_clients)


@st.composite
def sized_splits(draw):
    num_clients, min_size = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    rows = draw(st.integers(max(8, num_clients * min_size), 150))
    concentration = draw(st.floats(1e-3, 100.0))
    kind = draw(st.sampled_from([LabelDirichlet, QuantileDirichlet, QuantitySkew, CovariateShift]))
    return kind(concentration=concentration, min_size=min_size), rows, num_clients


def alternating(rows, labels=True):
    x = np.random.default_rng(rows).normal(size=(rows, 2))
    return Table.from_arrays(x, np.arange(rows) % 2 if labels else np.arange(rows), labels=labels)


@settings(max_examples=80, deadline=None)
@given(sized_splits(), st.integers(0, 2**64))
def test_every_row_is_owned_once_and_nobody_is_below_min_size(case, seed):
    split, rows, num_clients = case
    assignment = split.assign(alternating(rows), num_clients, seed)
    assert assignment.client_of_row.shape == (rows,)
    assert assignment.client_of_row.dtype.kind == "i"
    sizes = sizes_of(assignment)
    assert len(sizes) == num_clients
    assert sizes.min() >= split.min_size


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([IID(), InOrder(), ConceptShift()]), st.integers(1, 20), st.integers(0, 80), st.booleans())
def test_even_splits_have_sizes_that_differ_by_at_most_one(split, num_clients, extra, labels):
    table = alternating(num_clients + extra + 2, labels)
    sizes = sizes_of(split.assign(table, num_clients, 1))
    assert len(sizes) == num_clients
    assert np.ptp(sizes) <= 1


@pytest.mark.parametrize("split", [s for s in ALL if not isinstance(s, ByColumn)], ids=lambda s: type(s).__name__)
def test_same_seed_same_bytes_and_another_seed_another_split(split, classification):
    one, again, other = (split.assign(classification, 6, seed) for seed in (1, 1, 2))
    assert one.client_of_row.tobytes() == again.client_of_row.tobytes()
    assert one.table.y.tobytes() == again.table.y.tobytes()
    same = np.array_equal(one.client_of_row, other.client_of_row)
    assert same == isinstance(split, InOrder)


def test_in_order_keeps_rows_where_they_are(regression):
    assignment = InOrder().assign(regression, 7, 0)
    assert (np.diff(assignment.client_of_row) >= 0).all()
    clients = Clients.pack(assignment.table, assignment.client_of_row, 7)
    assert np.shares_memory(clients.x, regression.x)


def test_iid_mixes_the_rows(regression):
    owners = IID().assign(regression, 6, 0).client_of_row
    halves = np.bincount(owners[:300], minlength=6)
    assert halves.min() > 30
    assert not np.array_equal(owners, np.sort(owners))


def spread_of_label_shares(split, table, seed):
    assignment = split.assign(table, 10, seed)
    positive = np.bincount(assignment.client_of_row, weights=table.y > 0, minlength=10) / sizes_of(assignment)
    return np.abs(positive - (table.y > 0).mean()) @ sizes_of(assignment) / table.num_rows


def test_smaller_concentration_means_more_skewed_labels(classification):
    spreads = [
        np.mean([spread_of_label_shares(LabelDirichlet(concentration=c), classification, s) for s in range(8)])
        for c in (0.1, 1.0, 10.0, 1000.0)
    ]
    assert spreads[0] > spreads[1] > spreads[2] > spreads[3]
    assert spreads[0] > 0.25
    assert spreads[3] < 0.02


def between_clients(values, owners):
    """The share of the variance of `values` that lies between clients."""
    sizes = np.bincount(owners)
    means = np.bincount(owners, weights=values) / sizes
    return (means - values.mean()) ** 2 @ sizes / len(values) / values.var()


def test_quantile_dirichlet_moves_targets_and_quantity_skew_does_not(regression):
    skewed = QuantileDirichlet(concentration=0.2).assign(regression, 10, 0).client_of_row
    sized = QuantitySkew(concentration=0.2).assign(regression, 10, 0).client_of_row
    assert between_clients(regression.y, skewed) > 0.15
    assert between_clients(regression.y, sized) < 0.05
    assert np.bincount(sized).max() > 3 * 60


def test_covariate_shift_moves_every_feature():
    table = PaperRegression(num_samples=2000, num_features=2).generate(0)
    owners = [CovariateShift(concentration=0.1).assign(table, 5, seed).client_of_row for seed in range(10)]
    shares = [np.mean([between_clients(table.x[:, j], o) for o in owners]) for j in (0, 1)]
    # Under IID it would be (clients - 1) / rows.
    assert min(shares) > 20 * 4 / 2000


def test_covariate_shift_does_not_depend_on_units(regression):
    rescaled = Table(regression.x * [1.0, 2.0**20, 1.0, 2.0**-20], regression.y, labels=False)
    owners = [CovariateShift().assign(table, 5, 1).client_of_row for table in (regression, rescaled)]
    assert np.array_equal(*owners)


def test_a_constant_column_does_not_disturb_covariate_shift(regression):
    x = np.column_stack([np.full(600, 0.1), regression.x])
    table = Table.from_arrays(x, regression.y, labels=False)
    assert sizes_of(CovariateShift().assign(table, 5, 0)).sum() == 600


def slope_error(table, owners, client, params):
    mine = owners == client
    return np.std(table.y[mine] - table.x[mine] @ params[:-1] - params[-1])


def test_concept_shift_changes_targets_of_the_stated_fraction_only(regression):
    data = PaperRegression(num_samples=600, num_features=4)
    assignment = ConceptShift(fraction=0.3, strength=0.5).assign(regression, 10, 3)
    errors = [slope_error(assignment.table, assignment.client_of_row, c, data.true_params(5)) for c in range(10)]
    shifted = np.array(errors) > 1.0
    assert shifted.sum() == 3
    assert np.array(errors)[~shifted].max() < 0.3
    assert np.mean(np.array(errors)[shifted]) == pytest.approx(0.5 * regression.y.std(), rel=0.3)
    assert assignment.table.x is regression.x


def test_concept_shift_gives_each_client_its_own_direction(regression):
    assignment = ConceptShift(fraction=1.0).assign(regression, 2, 3)
    change = assignment.table.y - regression.y
    fits = [
        np.linalg.lstsq(regression.x[rows], change[rows], rcond=None)[0]
        for rows in (assignment.client_of_row == 0, assignment.client_of_row == 1)
    ]
    cosine = fits[0] @ fits[1] / np.linalg.norm(fits[0]) / np.linalg.norm(fits[1])
    assert abs(cosine) < 0.99


def test_concept_shift_flips_labels_with_probability_strength(classification):
    for strength in (0.25, 1.0):
        assignment = ConceptShift(fraction=0.5, strength=strength).assign(classification, 4, 1)
        flipped = np.bincount(assignment.client_of_row, weights=assignment.table.y != classification.y) / 150
        assert np.sort(flipped)[:2].tolist() == [0, 0]
        assert np.sort(flipped)[2:] == pytest.approx([strength] * 2, abs=0.1)


def test_concept_shift_shifts_at_least_one_client(classification):
    assignment = ConceptShift(fraction=0.01).assign(classification, 3, 1)
    assert (assignment.table.y != classification.y).sum() == 200


def test_by_column_makes_a_client_of_each_value():
    x = np.array([[9.0, 1.0], [7.0, 2.0], [9.0, 3.0], [8.0, 4.0]])
    table = Table.from_arrays(x, [1, 2, 3, 4])
    assignment = ByColumn(column=0).assign(table, None, 0)
    assert assignment.num_clients == 3
    assert assignment.client_of_row.tolist() == [2, 0, 2, 1]
    assert assignment.table.x.tolist() == [[1], [2], [3], [4]]
    kept = ByColumn(column=0, drop=False).assign(table, 3, 0)
    assert kept.table.x is table.x


def test_published_is_a_uniform_assignment_whatever_the_concentration(classification):
    for concentration in (0.05, 0.5, 50.0):
        owners = Published(concentration=concentration).assign(classification, 5, 11).client_of_row
        cells = np.bincount(owners * 2 + (classification.y > 0), minlength=10)
        expected = np.tile([(classification.y < 0).sum(), (classification.y > 0).sum()], 5) / 5
        assert chisquare(cells, expected, ddof=1).pvalue > 0.001


def test_published_gives_each_row_to_the_largest_share_of_its_own_vector(regression):
    vectors = keyed(3, "split.deal").dirichlet([0.5] * 4, 600)
    owners = Published().assign(regression, 4, 3).client_of_row
    assert (vectors[np.arange(600), owners] == vectors.max(axis=1)).all()


def test_published_in_blocks_gives_the_same_rows(regression, monkeypatch):
    whole = Published().assign(regression, 5, 1).client_of_row
    monkeypatch.setattr("asyncfed.data.splits.PUBLISHED_DRAWS_AT_ONCE", 37)
    assert np.array_equal(Published().assign(regression, 5, 1).client_of_row, whole)


@pytest.mark.parametrize("split", ALL, ids=lambda s: type(s).__name__)
def test_a_split_survives_plain_text(split):
    assert from_plain(to_plain(split), Split) == split


def test_what_each_split_asks():
    claims = {to_plain(split)["kind"]: split.claimed_skew for split in ALL}
    assert claims == {
        "iid": set(),
        "in_order": set(),
        "label_dirichlet": {"target"},
        "quantile_dirichlet": {"target"},
        "quantity_skew": {"sizes"},
        "covariate_shift": {"features"},
        "concept_shift": {"concept"},
        "by_column": None,
        "published": {"target"},
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelDirichlet(concentration=0.0), r"split.concentration is 0\.0; it must lie between 1e-06"),
        (lambda: Published(concentration=float("nan")), "split.concentration is nan"),
        (lambda: QuantitySkew(concentration=1e7), 'For IID clients, use "iid"'),
        (lambda: QuantileDirichlet(min_size=0), "split.min_size is 0; every client needs at least 1 row"),
        (lambda: CovariateShift(bins=1), "split.bins is 1; .* at least 2 bins"),
        (lambda: ConceptShift(fraction=0.0), r"split.fraction is 0\.0; it must be above 0 and at most 1"),
        (lambda: ConceptShift(strength=0.0), r"split.strength is 0\.0; .* positive"),
        (lambda: ByColumn(column=-1), "split.column is -1; columns are counted from 0"),
    ],
)
def test_impossible_splits_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("split", "num_clients", "message"),
    [
        (LabelDirichlet(), 5, 'needs labels.*use "quantile_dirichlet"'),
        (QuantitySkew(min_size=200), 4, "4 clients of at least 200 row.* need 800 rows, but there are 600. Use fewer"),
        (IID(), 601, "601 clients of at least 1 row.* need 601 rows"),
        (IID(), 0, "num_clients is 0; there must be at least 1"),
        (Published(), None, 'num_clients is missing; only the split "by_column"'),
        (ByColumn(column=4), None, "split.column is 4, but x has 4 columns"),
        (ByColumn(column=0), 3, "num_clients is 3, but column 0 has 600 distinct values"),
    ],
)
def test_splits_that_do_not_fit_the_table_are_refused(split, num_clients, message, regression):
    with pytest.raises(ConfigError, match=message):
        split.assign(regression, num_clients, 0)


def test_a_flip_probability_above_one_is_refused(classification):
    with pytest.raises(ConfigError, match=r"split.strength is 2\.0; .* at most 1"):
        ConceptShift(strength=2.0).assign(classification, 4, 0)


def test_the_only_feature_cannot_be_dropped():
    table = Table.from_arrays([[1.0], [2.0]], [3.0, 4.0])
    with pytest.raises(ConfigError, match=r"only feature; set split\.drop = false"):
        ByColumn(column=0).assign(table, None, 0)


@pytest.mark.parametrize("split", [QuantileDirichlet(), CovariateShift()], ids=lambda s: type(s).__name__)
def test_data_without_differences_cannot_be_skewed(split):
    table = Table.from_arrays(np.ones((10, 2)), np.ones(10), labels=False)
    with pytest.raises(DataError, match=r"all alike.*quantity_skew"):
        split.assign(table, 2, 0)
