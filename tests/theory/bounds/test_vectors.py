"""Numbers worked out once, independently, to six digits; and those of the paper's own settings."""

from dataclasses import replace

import numpy as np
import pytest

from asyncfed.theory import bounds
from asyncfed.theory.counter_examples import delayed_descent


def six(value):
    return pytest.approx(value, rel=5e-6)


def test_sampling_without_replacement():
    assert bounds.population_variance([1, 2, 4, 8, 10]) == 12
    assert bounds.variance_without_replacement(variance=12, sample_size=2, population=5) == six(4.5)


def test_order_sum_and_its_bound():
    assert bounds.participation_sum(num_clients=5, cohort_size=3, local_steps=4, variance=1) == six(166)
    assert bounds.participation_sum_bound(cohort_size=3, local_steps=4, variance=1) == 288
    assert bounds.cross_term(position=4, local_step=3, local_steps=5, num_clients=6, variance=2) == six(-36)


PAPER = {
    "smoothness": 4,
    "strong_convexity": 0.5,
    "gradient_variance": 2,
    "optimum_heterogeneity": 1.5,
    "num_clients": 10,
    "local_steps": 20,
}


def test_recursion_and_drift():
    right = bounds.round_recursion(
        **PAPER, cohort_size=5, learning_rate=1 / 2400, distance_squared=3, objective_gap=0.7, client_drift=0.01
    )
    assert right == six(2.95065)
    drift = bounds.client_drift_bound(
        smoothness=4,
        gradient_variance=2,
        optimum_heterogeneity=1.5,
        cohort_size=5,
        local_steps=20,
        learning_rate=1 / 2400,
        objective_gap=0.7,
    )
    assert drift == six(1.58333)


def test_theorem():
    run = {**PAPER, "start_distance_squared": 3, "cohort_size": 5}
    printed = bounds.TheoremSetting(**run, learning_rate=1 / 4800)
    assert bounds.theorem_as_printed(printed, last_index=300) == six(0.321574)
    corrected = bounds.TheoremSetting(**run, learning_rate=1 / 2400)
    assert bounds.theorem_exponential(corrected, last_index=300) == six(0.429908)
    assert bounds.theorem_corrected(corrected, last_index=300) == six(0.233872)


def test_tuning():
    lemma = {"contraction": 0.25, "gain": 1 / 3, "noise": 2, "start": 3}
    assert bounds.tuning_as_printed(**lemma, base_rate=0.04) == six(0.0115375)
    assert bounds.tuning_constant(**lemma, rate=0.04, last_index=500) == six(0.254732)
    rates = bounds.decayed_rates(base_rate=0.04, delay_penalty=0.01, delays=2, last_index=500)
    assert bounds.tuning_any_rates(**lemma, rates=rates)[-1] == six(4.28052)


def test_stale_rounds():
    run = bounds.StaleSetting(
        **PAPER, cohort_size=5, learning_rate=1 / 2560, staleness=3, server_step=1, start_distance_squared=3
    )
    assert bounds.largest_effective_step(smoothness=4, staleness=3) == six(0.0078125)
    assert bounds.r_star_averaged(run, last_index=2000) == six(0.0236362)
    assert bounds.r_star_last(run, last_index=2000) == six(0.0933202)
    assert bounds.r_averaged(run, last_index=2000) == six(0.0416726)
    assert bounds.r_last(run, last_index=2000) == six(0.105934)


def test_delta_path():
    of_client = bounds.local_map(smoothness=4, strong_convexity=0.5, learning_rate=0.002, local_steps=5)
    assert (of_client.gain, of_client.stretch) == (six(0.00499001), six(0.0399201))
    gap = bounds.fixed_point_gap(gain=of_client.gain, strong_convexity=0.5, largest_optimum_gradient=0.3)
    run = {"gain": of_client.gain, "stretch": of_client.stretch, "fixed_point_gap": gap, "staleness": 2}
    assert bounds.delta_path(**run) == (six(0.999639), six(1.79336))
    assert bounds.delta_path_bound(**run, start_distance=2, num_updates=1500) == six(2.95732)


def test_mixing_path():
    of_client = bounds.local_map(smoothness=4, strong_convexity=0.5, learning_rate=0.01, local_steps=20)
    assert of_client.shrink == six(0.904610)
    gap = bounds.fixed_point_gap(gain=of_client.gain, strong_convexity=0.5, largest_optimum_gradient=0.3)
    run = {"gain": of_client.gain, "fixed_point_gap": gap, "staleness": 5, "mixing": 0.5}
    assert bounds.mixing_path(**run) == (six(0.991888), six(0.6))
    assert bounds.mixing_path_bound(**run, start_distance=2, num_updates=200) == six(0.992256)


CURVED = {"smoothness": 4, "strong_convexity": 0.5, "largest_optimum_gradient": 0.3}


def test_p_from_plain_inputs():
    run = bounds.PathSetting(**CURVED, learning_rate=0.002, local_steps=5, server_step=1, staleness=2)
    found = bounds.p_constants(run)
    assert (found.gain, found.stretch) == (six(0.00499001), six(0.0399201))
    assert (found.rate, found.floor) == (six(0.999639), six(1.79336))
    assert bounds.p_bound(run, start_distance=2, num_updates=1500) == six(2.95732)


def test_m_from_plain_inputs():
    run = bounds.PathSetting(**CURVED, learning_rate=0.01, local_steps=20, server_step=0.5, staleness=5)
    found = bounds.m_constants(run)
    assert (found.shrink, found.rate, found.floor) == (six(0.904610), six(0.991888), six(0.6))
    assert bounds.m_bound(run, start_distance=2, num_updates=200) == six(0.992256)


def test_delay_limit_and_hinge():
    assert bounds.delay_stability_limit(8) == six(0.184537)
    assert bounds.delay_stability_limit(9) == six(0.165159)
    hinge = bounds.hinge_bound(
        start_distance_squared=4, effective_step=0.01, last_index=999, largest_subgradient=3, staleness=2, local_steps=5
    )
    assert hinge == six(0.749)
    assert bounds.subgradient_bound is bounds.hinge_bound


def test_a_short_delayed_descent():
    path = delayed_descent(step=1 / 6, staleness=5, num_updates=8)
    assert path[:7] == pytest.approx(np.arange(6, -1, -1) / 6, abs=1e-15)
    assert (path[7], path[8]) == (six(-0.138889), six(-0.25))


REGRESSION = {
    "half": {"smoothness": 12.0639, "strong_convexity": 0.885293, "optimum_heterogeneity": 0.0175395},
    "mse": {"smoothness": 24.1277, "strong_convexity": 1.77059, "optimum_heterogeneity": 0.0701581},
}
"""The paper's regression problem, for the loss with the half and for PyTorch's MSELoss without."""
NOISE = {"half": 0.102585, "mse": 0.41034}


@pytest.mark.parametrize(
    ("loss", "local_steps", "limit", "excess", "averaging", "met_from"),
    [
        ("half", 50, 5.52614e-5, 18.10, 3.62, 328),
        ("half", 350, 7.89449e-6, 126.7, 25.3, 16046),
        ("mse", 50, 2.76307e-5, 36.19, 7.24, 1310),
        ("mse", 350, 3.94724e-6, 253.3, 50.7, 64182),
    ],
)
def test_the_papers_rate_breaks_its_own_condition(loss, local_steps, limit, excess, averaging, met_from):
    at = {"smoothness": REGRESSION[loss]["smoothness"], "local_steps": local_steps}
    assert bounds.largest_paper_learning_rate(**at, cohort_size=5) == pytest.approx(limit, rel=1e-5)
    assert bounds.step_excess(learning_rate=1e-3, **at, cohort_size=5) == pytest.approx(excess, rel=5e-4)
    assert bounds.step_excess(learning_rate=1e-3, **at, cohort_size=1) == pytest.approx(averaging, rel=2e-3)
    ratio = bounds.largest_averaging_learning_rate(**at) / bounds.largest_paper_learning_rate(**at, cohort_size=5)
    assert ratio == pytest.approx(5)
    assert bounds.met_from_round(base_learning_rate=1e-3, **at, cohort_size=5) == pytest.approx(met_from, rel=2e-5)


@pytest.mark.parametrize(
    ("loss", "local_steps", "corrected", "statement", "proof_at_base", "statement_at_base"),
    [
        ("half", 50, 45.7193, 3.96093, 0.0602554, 0.107587),
        ("half", 350, 45.7192, 3.96084, 2.41397, 4.74486),
        ("mse", 50, 91.4386, 7.92186, 0.453733, 0.855769),
        ("mse", 350, 91.4384, 7.92169, 19.1431, 37.9539),
    ],
)
def test_the_theorem_in_the_papers_setting(loss, local_steps, corrected, statement, proof_at_base, statement_at_base):
    smoothness = REGRESSION[loss]["smoothness"]
    rate = bounds.largest_paper_learning_rate(smoothness=smoothness, cohort_size=5, local_steps=local_steps)
    run = bounds.TheoremSetting(
        **REGRESSION[loss],
        gradient_variance=NOISE[loss],
        num_clients=10,
        cohort_size=5,
        local_steps=local_steps,
        learning_rate=rate,
        start_distance_squared=132.475,
    )
    at_base, close = replace(run, learning_rate=1e-3), {"rel": 2e-5}
    assert bounds.theorem_exponential(run, last_index=400) == pytest.approx(corrected, **close)
    printed = bounds.theorem_as_printed(run, last_index=400, check_step=False)
    assert printed == pytest.approx(statement, **close)
    proof = bounds.theorem_of_proof(at_base, last_index=400, check_step=False)
    assert proof == pytest.approx(proof_at_base, **close)
    printed = bounds.theorem_as_printed(at_base, last_index=400, check_step=False)
    assert printed == pytest.approx(statement_at_base, **close)


@pytest.mark.parametrize(
    ("staleness", "rate", "after"),
    [(0, 2.2539e-5, 2.28e-4), (1, 1.1270e-5, 0.0540), (2, 7.5130e-6, 0.561), (5, 3.7565e-6, 6.33)],
)
def test_r_star_in_the_papers_setting(staleness, rate, after):
    limit = bounds.largest_stale_learning_rate(smoothness=15.846, staleness=staleness, local_steps=350)
    assert limit == pytest.approx(rate, rel=1e-4)
    run = bounds.StaleSetting(
        smoothness=15.846,
        strong_convexity=0.885293,
        gradient_variance=0.0866,
        optimum_heterogeneity=0.0175395,
        num_clients=10,
        cohort_size=5,
        local_steps=350,
        learning_rate=limit,
        staleness=staleness,
        start_distance_squared=132.475,
    )
    assert bounds.r_star_averaged(run, last_index=4000) == pytest.approx(after, rel=5e-3)


def test_paths_in_the_papers_setting():
    for staleness, rate in ((1, 1.743e-5), (5, 3.478e-6)):
        limit = bounds.largest_delta_learning_rate(
            smoothness=12.0639, strong_convexity=0.885293, local_steps=350, staleness=staleness
        )
        assert limit == pytest.approx(rate, rel=2e-4)
    # The largest client gradient at the optimum is not printed; it is the same multiple of μ for both losses.
    floors = []
    for loss, reached in (("half", 0.7197), ("mse", 0.2244)):
        problem = {key: REGRESSION[loss][key] for key in ("smoothness", "strong_convexity")}
        of_client = bounds.local_map(**problem, learning_rate=1e-3, local_steps=350)
        without_floor = bounds.mixing_path_bound(
            gain=of_client.gain, fixed_point_gap=0, staleness=5, start_distance=132.475**0.5, num_updates=60
        )
        floors.append(reached - without_floor)
    assert floors[0] == pytest.approx(floors[1], abs=3e-4)
    assert floors[0] > (0.0175395**0.5) / 0.885293
