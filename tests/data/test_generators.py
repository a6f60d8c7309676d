import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import ValidationError, from_plain, to_plain
from asyncfed.data import DataSource, PaperClassification, PaperRegression
from asyncfed.data.column_sums import column_moments, weighted_columns

BOTH = [PaperRegression, PaperClassification]


def test_regression_follows_its_law_up_to_the_stated_noise():
    data = PaperRegression(num_samples=5000)
    table, params = data.generate(4), data.true_params(4)
    errors = table.y - (table.x @ params[:-1] + params[-1])
    assert params[-1] == 5.0
    assert errors.std() == pytest.approx(0.2, rel=0.05)
    assert abs(errors.mean()) < 0.02
    assert abs(np.corrcoef(errors, table.x[:, 0])[0, 1]) < 0.05


def test_no_noise_is_the_law_itself():
    data = PaperRegression(num_samples=50, noise=0.0)
    table, params = data.generate(1), data.true_params(1)
    np.testing.assert_allclose(table.y, table.x @ params[:-1] + 5.0, rtol=1e-12)


def test_labels_are_the_side_of_the_plane():
    data = PaperClassification(num_samples=500)
    table, params = data.generate(2), data.true_params(2)
    assert table.labels
    assert (table.y == np.sign(table.x @ params[:-1] + params[-1])).all()
    assert 0.3 < (table.y > 0).mean() < 0.8


@pytest.mark.parametrize("kind", BOTH)
def test_features_and_weights_fill_their_ranges(kind):
    data = kind(num_samples=4000, low=1.0, high=3.0, weight_low=-2.0, weight_high=-1.0, num_features=50)
    x, weights = data.generate(0).x, data.true_params(0)[:-1]
    assert x.min() >= 1.0
    assert x.max() <= 3.0
    assert np.ptp(x, axis=0).min() > 1.98
    assert x.mean() == pytest.approx(2.0, abs=0.01)
    assert weights.min() >= -2.0
    assert weights.max() <= -1.0
    assert np.ptp(weights) > 0.8


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_seed_same_bytes_and_another_seed_others(kind, dtype):
    data = kind(num_samples=100)
    one, again, other = data.generate(1, dtype), data.generate(1, dtype), data.generate(2, dtype)
    assert one.x.dtype == one.y.dtype == np.dtype(dtype)
    assert one.x.tobytes() == again.x.tobytes()
    assert one.y.tobytes() == again.y.tobytes()
    assert one.x.tobytes() != other.x.tobytes()
    assert not np.array_equal(data.true_params(1), data.true_params(2))


def test_more_rows_extend_a_data_set_without_changing_it():
    few, many = PaperRegression(num_samples=10).generate(3), PaperRegression(num_samples=20).generate(3)
    assert np.array_equal(few.x, many.x[:10])
    assert np.array_equal(few.y, many.y[:10])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_samples": 0}, "data.num_samples is 0; it must be at least 1"),
        ({"num_features": -1}, "data.num_features is -1"),
        ({"low": 5.0, "high": 5.0}, "data.low is 5.0 and data.high 5.0; low must be below high"),
        ({"weight_low": 3.0, "weight_high": 2.0}, "data.weight_low is 3.0"),
        ({"bias": float("inf")}, "data.bias is inf; it must be a finite number"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_impossible_designs_are_refused(kind, fields, message):
    with pytest.raises(ConfigError, match=message):
        kind(**fields)


def test_negative_noise_is_refused():
    with pytest.raises(ConfigError, match=r"data.noise is -0\.1"):
        PaperRegression(noise=-0.1)


@pytest.mark.parametrize("data", [PaperRegression(num_samples=7, noise=0.5), PaperClassification(bias=-1.0)])
def test_a_generator_survives_plain_text(data):
    assert from_plain(to_plain(data), DataSource) == data


def test_an_unknown_generator_is_refused():
    with pytest.raises(ValidationError, match="paper_regresion"):
        from_plain({"kind": "paper_regresion"}, DataSource)


def test_weighted_columns_is_the_matrix_product_across_blocks(monkeypatch):
    monkeypatch.setattr("asyncfed.data.column_sums.ROWS_AT_ONCE", 8)
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(21, 4)), rng.normal(size=4)
    np.testing.assert_allclose(weighted_columns(x, weights), x @ weights, rtol=1e-12)


def test_a_constant_column_has_exactly_no_spread():
    assert column_moments(np.full((7, 1), 0.1))[1].tolist() == [0.0]
