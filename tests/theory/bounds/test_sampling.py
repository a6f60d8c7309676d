"""Lemmas 1 to 4 against exact enumeration and random problems."""

from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.theory import bounds

populations = st.lists(st.integers(-20, 20), min_size=2, max_size=5)
exactly = settings(derandomize=True, deadline=None, max_examples=25)


def centred(values):
    mean = Fraction(sum(values), len(values))
    return [value - mean for value in values]


def mean_square(sums):
    sums = list(sums)
    return sum(value**2 for value in sums) / Fraction(len(sums))


@exactly
@given(populations, st.data())
def test_the_variance_of_a_mean_is_that_of_all_draws(values, data):
    size = data.draw(st.integers(1, len(values)))
    offsets, variance = centred(values), bounds.population_variance(values)
    drawn = mean_square(sum(draw) / size for draw in combinations(offsets, size))
    formula = bounds.variance_without_replacement(variance=variance, sample_size=size, population=len(values))
    assert formula == pytest.approx(float(drawn), rel=1e-12, abs=1e-12)
    if size <= 3:
        repeated = mean_square(sum(draw) / size for draw in product(offsets, repeat=size))
        with_replacement = bounds.variance_with_replacement(variance=variance, sample_size=size)
        assert with_replacement == pytest.approx(float(repeated), rel=1e-12, abs=1e-12)


def test_what_cannot_be_drawn_is_named():
    for values in (5, [], None):
        with pytest.raises(ConfigError, match=r"values is .*but must be at least one number"):
            bounds.population_variance(values)
    with pytest.raises(ConfigError, match=r"^sample_size is 6, but must be at least 1 and at most 5\. No more can be"):
        bounds.variance_without_replacement(variance=1, sample_size=6, population=5)
    with pytest.raises(ConfigError, match=r"^num_clients is 1, but must be at least 2\. With one client nothing"):
        bounds.participation_sum(num_clients=1, cohort_size=1, local_steps=1, variance=1)


def test_one_client_has_no_drawing_noise():
    assert bounds.variance_without_replacement(variance=3, sample_size=1, population=1) == 0


@exactly
@given(populations, st.integers(1, 4), st.data())
def test_order_sums_are_those_of_all_permutations(values, local_steps, data):
    size, clients = data.draw(st.integers(1, len(values))), len(values)
    offsets, variance = centred(values), bounds.population_variance(values)
    orders, total = list(permutations(offsets)), Fraction(0)
    for position, step in product(range(1, size + 1), range(local_steps)):
        before = [sum(order[: position - 1]) for order in orders]
        own = [order[position - 1] for order in orders]
        cross = sum(2 * local_steps * step * a * b for a, b in zip(before, own, strict=True)) / len(orders)
        formula = bounds.cross_term(
            position=position, local_step=step, local_steps=local_steps, num_clients=clients, variance=variance
        )
        assert formula == pytest.approx(float(cross), rel=1e-9, abs=1e-9)
        total += mean_square(local_steps * a + step * b for a, b in zip(before, own, strict=True))
    gamma = bounds.participation_sum(num_clients=clients, cohort_size=size, local_steps=local_steps, variance=variance)
    assert gamma == pytest.approx(float(total), rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_the_order_bound_holds_and_is_never_tight():
    worst = 0.0
    for clients, steps in product(range(2, 25), range(1, 25)):
        for size in range(1, clients + 1):
            gamma = bounds.participation_sum(num_clients=clients, cohort_size=size, local_steps=steps, variance=1)
            worst = max(worst, gamma / bounds.participation_sum_bound(cohort_size=size, local_steps=steps, variance=1))
    assert 0.8 < worst < 0.889


@pytest.mark.parametrize(("clients", "size", "steps"), [(5, 3, 2), (5, 3, 4), (7, 2, 3), (4, 4, 5)])
def test_the_appendix_is_right_once_its_misprints_are(clients, size, steps):
    sizes = {"num_clients": clients, "cohort_size": size, "local_steps": steps}
    gamma = bounds.participation_sum(**sizes, variance=1)
    assert bounds.appendix_terms(**sizes).sum() == pytest.approx(gamma)
    printed = bounds.appendix_line_two_as_printed(**sizes), bounds.appendix_line_three_as_printed(**sizes)
    assert all((line == pytest.approx(gamma)) == (size == clients) for line in printed)


def test_the_appendix_is_off_by_thirteen():
    sizes = {"num_clients": 5, "cohort_size": 3, "local_steps": 2}
    gamma = bounds.participation_sum(**sizes, variance=1)
    assert bounds.appendix_line_two_as_printed(**sizes) - gamma == pytest.approx(-13)
    with pytest.raises(ConfigError, match="divides by cohort_size - 1"):
        bounds.appendix_line_two_as_printed(num_clients=5, cohort_size=1, local_steps=2)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_lemma_two_and_the_bregman_bound_on_random_quadratics(seed):
    chance = np.random.default_rng(seed)
    size = chance.integers(1, 5)
    basis, _ = np.linalg.qr(chance.normal(size=(size, size)))
    spectrum = chance.uniform(0.01, 10, size) ** chance.choice([1, 2])
    hessian = basis * spectrum @ basis.T
    x, y, z = chance.normal(size=(3, size)) * chance.choice([0.1, 1, 10], size=(3, 1))
    left, right = bounds.perturbed_convexity(
        gradient_at_x=hessian @ x,
        x=x,
        y=y,
        z=z,
        value_at_y=y @ hessian @ y / 2,
        value_at_z=z @ hessian @ z / 2,
        smoothness=spectrum.max(),
        strong_convexity=spectrum.min(),
    )
    scale = 1e-9 * (1 + abs(left) + spectrum.max() * (x @ x + y @ y + z @ z))
    assert left >= right - scale
    divergence = (x - y) @ hessian @ (x - y) / 2
    lower = bounds.bregman_lower_bound(gradient_difference=hessian @ (x - y), smoothness=spectrum.max())
    assert lower <= divergence + scale
    # With half the smoothness the inequality is wrong along the steepest direction: the test can fail.
    steep = basis[:, spectrum.argmax()]
    half = bounds.bregman_lower_bound(gradient_difference=hessian @ steep, smoothness=spectrum.max() / 2)
    assert half > steep @ hessian @ steep / 2


def test_martingale_sums_of_signs():
    """x_k = sign_k (1 + sign_1): differences of variance at most 4, summed over all signs."""
    terms = 4
    squares = [
        sum(sign * (1 + signs[0] if k else 1) for k, sign in enumerate(signs)) ** 2
        for signs in product((-1, 1), repeat=terms)
    ]
    exact = 1 + (terms - 1) * 2
    assert np.mean(squares) == exact
    assert exact <= bounds.martingale_sum_bound(num_terms=terms, gradient_variance=4) == 16
