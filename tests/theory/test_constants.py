"""The record of all constants, against numbers worked out by hand and for the paper's own settings."""

import dataclasses

import numpy as np
import pytest

from asyncfed.theory.constants import Constants, constants
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.noise import gradient_variance

TWO = [([[1], [2], [3]], [1, 2, 2]), ([[-1], [0], [2]], [0, 1, 4])]


def paper_data(loss, labels=False, **model):
    """The paper's data as NumPy's default generator draws them from seed 0, split as its scripts do.

    Each row goes to the largest of a Dirichlet(½) draw of its own, which is to say to anybody.
    """
    rng = np.random.default_rng(0)
    x, weights = rng.uniform(-5, 5, (2000, 10)), rng.uniform(2, 4, 10)
    y = x @ weights + 5
    y = np.where(y > 0, 1.0, -1.0) if labels else y + 0.2 * rng.standard_normal(2000)
    owners = np.argmax(rng.dirichlet(np.full(10, 0.5), 2000), axis=1)
    order = np.argsort(owners, kind="stable")
    return LinearData(x[order], y[order], np.append(0, np.cumsum(np.bincount(owners))), loss, **model)


def test_two_clients_of_three_points():
    found = constants(LinearData.of_clients(TWO))
    expected = {
        "smoothness": 5.54647,
        "strong_convexity": 0.120197,
        "objective_smoothness": 3.67541,
        "objective_strong_convexity": 0.491252,
        "optimum_heterogeneity": 1.87111,
        "largest_optimum_gradient": 1.36789,
        "phi2": 1.14456,
        "beta2": 3.74222,
        "gradient_variance_mean": (1.16849 + 3.37757) / 2,
        "gradient_variance_max": 3.37757,
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=5e-6), name
    np.testing.assert_allclose(found.optimum, [0.676923, 0.876923], atol=5e-7)
    variances = gradient_variance(LinearData.of_clients(TWO), found.optimum)
    np.testing.assert_allclose(variances, [1.16849, 3.37757], rtol=5e-6)


def test_two_clients_of_three_points_without_the_half():
    found = constants(LinearData.of_clients(TWO, loss="mse"))
    expected = {
        "smoothness": 11.0929,
        "strong_convexity": 0.240393,
        "optimum_heterogeneity": 7.48444,
        "beta2": 14.9689,
        "phi2": 1.14456,
    }
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=5e-6), name


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (
            "least_squares",
            {
                "smoothness": 12.0639,
                "strong_convexity": 0.885293,
                "objective_smoothness": 9.14451,
                "objective_strong_convexity": 0.988778,
                "optimum_heterogeneity": 0.0175395,
                "gradient_variance_max": 0.102585,
                "start_gradient_variance_max": 2111.48,
            },
        ),
        (
            "mse",
            {
                "smoothness": 24.1277,
                "strong_convexity": 1.77059,
                "objective_smoothness": 18.2890,
                "objective_strong_convexity": 1.97756,
                "optimum_heterogeneity": 0.0701581,
                "gradient_variance_max": 0.41034,
                "start_gradient_variance_max": 8445.93,
            },
        ),
    ],
)
def test_the_paper_s_regression(loss, expected):
    data = paper_data(loss)
    assert (data.sizes.min(), data.sizes.max()) == (179, 218)
    found = constants(data, batch_size=32)
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, rel=6e-6), name
    assert found.start_distance**2 == pytest.approx(132.475, rel=4e-6)
    factor = {"least_squares": 1, "mse": 2}[loss]
    assert found.expected_smoothness == pytest.approx(15.846 * factor, abs=6e-4 * factor)
    assert found.gradient_variance_mean == pytest.approx(0.0866 * factor**2, abs=5e-5 * factor**2)


def test_the_paper_s_support_vector_machine():
    plain = constants(paper_data("hinge", labels=True), batch_size=32)
    assert plain.smoothness is None
    assert plain.strong_convexity == 0.0
    assert plain.separable is True
    assert plain.optimal_value == pytest.approx(0.0, abs=1e-9)
    assert plain.largest_subgradient == pytest.approx(13.50, abs=0.005)
    assert plain.start_value == pytest.approx(1.0)
    squared = constants(paper_data("squared_hinge", labels=True, l2=1e-3))
    assert squared.smoothness == pytest.approx(12.2263, rel=5e-6)
    assert squared.strong_convexity == 1e-3


LABELS = [([[1.0], [2.0], [3.0]], [1, -1, 1]), ([[-1.0], [0.5]], [-1, 1])]


@pytest.mark.parametrize("loss", ["least_squares", "mse", "logistic", "hinge", "squared_hinge", "huber_hinge"])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("radius", [None, 1.0])
def test_what_is_missing_has_a_reason_and_what_is_there_has_none(loss, l2, radius):
    found = constants(LinearData.of_clients(LABELS, loss=loss, l2=l2), batch_size=2, radius=radius)
    optional = {each.name for each in dataclasses.fields(Constants) if "None" in str(each.type)}
    missing = {name for name in optional if getattr(found, name) is None} - {"batch_size", "ball_radius"}
    explained = set(found.not_applicable) - {"ball_radius"}
    assert missing == explained
    assert all(reason.endswith(".") for reason in found.not_applicable.values())
    if found.optimum is None and radius is not None:
        assert "no ball about the optimum" in found.not_applicable["ball_radius"]


def test_a_ball_and_a_start_are_used():
    data = LinearData.of_clients(LABELS, loss="logistic", l2=0.1)
    wide, near = constants(data), constants(data, radius=0.1, start=[1.0, 2.0])
    assert near.strong_convexity > wide.strong_convexity == pytest.approx(0.1)
    assert near.objective_strong_convexity >= near.strong_convexity
    assert near.start_distance == pytest.approx(np.linalg.norm(near.optimum - [1.0, 2.0]))
    assert near.gradient_variance_max <= near.ball_gradient_variance_max <= near.uniform_gradient_variance
