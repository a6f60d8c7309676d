"""The paper's own regression, drawn as its scripts draw it: by how much its rate is too large."""

import numpy as np
import pytest

from asyncfed.certificates.paper_setting import paper_excess, paper_regression, paper_sentence
from asyncfed.theory.curvature import smoothness


def test_the_data_are_those_of_the_scripts():
    data = paper_regression()
    assert (data.num_clients, data.num_params, len(data.y)) == (10, 11, 2000)
    first = np.random.default_rng(0).uniform(-5.0, 5.0, (2000, 10))
    assert {tuple(row) for row in data.x} == {tuple(row) for row in first}


def test_the_mse_is_twice_as_steep():
    assert smoothness(paper_regression("mse")) == pytest.approx(2 * smoothness(paper_regression()))


def test_factors_of_the_worked_example():
    assert paper_excess("least_squares") == pytest.approx((18.10, 126.7), rel=5e-4)
    assert paper_excess("mse") == pytest.approx((36.19, 253.3), rel=5e-4)
    assert "18.1x / 126.7x" in paper_sentence()
    assert "36.2x / 253.3x" in paper_sentence()
