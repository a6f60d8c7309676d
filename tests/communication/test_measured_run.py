import numpy as np
import pytest

from asyncfed.communication.cells import DOWN_PER_UP, Cell, cell_experiment
from asyncfed.communication.entry import study_problem
from asyncfed.communication.measured_run import MOST_POINTS, Target, run_to_target
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.uplinks import TopK


def _run(codec, rate=0.1, link="1_mbit", strategy="fedbuff", seed=1, **changes):
    problem, target = study_problem("small", seed)
    experiment = cell_experiment(Cell("small", link, strategy, codec), rate, seed, target.level)
    return run_to_target(replace(experiment, **changes), problem, target), problem, target


@pytest.mark.parametrize("codec", ["none", "top_k_ef"])
def test_bytes_are_those_of_the_messages(codec):
    outcome, problem, _ = _run(codec)
    size = 100 * 8 if codec == "none" else TopK(fraction=0.01).size(problem.num_params, 8)
    for point in outcome.points[1:]:
        assert point.bytes_up == point.uploads * size
        assert point.bytes_down >= point.uploads * 800


def test_the_last_point_is_the_first_at_the_target():
    outcome, _, target = _run("none")
    assert outcome.verdict == "reached"
    assert outcome.reached == outcome.points[-1]
    lefts = [point.left for point in outcome.points]
    assert lefts[0] == 1.0
    assert lefts[-1] <= target.remaining < min(lefts[:-1])
    assert outcome.least_left == lefts[-1]


def test_who_never_reaches_it_says_how_far_it_came():
    outcome, _, target = _run("none", rate=0.003, budget=Budget(updates=40))
    assert outcome.verdict == "never"
    assert outcome.reached is None
    assert target.remaining < outcome.least_left < 1


def test_a_slow_link_takes_the_seconds_of_its_bytes():
    """FedAvg's rounds wait for all: a round takes the longest of its computing plus the same transfer for everybody."""
    slow, _, _ = _run("none", strategy="fedavg")
    fast, _, _ = _run("none", strategy="fedavg", link="10_mbit")
    assert [point.left for point in slow.points] == [point.left for point in fast.points]
    transfer = 800 * 8 / 1e6 * (1 + 1 / DOWN_PER_UP)
    rounds = slow.points[-1].uploads / 5
    assert slow.points[-1].seconds - fast.points[-1].seconds == pytest.approx(0.9 * transfer * rounds)


def test_a_run_that_diverges_has_no_target():
    outcome, *_ = _run("none", rate=100.0)
    assert outcome.verdict == "diverged"
    assert outcome.reached is None
    assert all(np.isfinite(point.left) for point in outcome.points)


def test_settings_that_are_refused_are_an_outcome():
    problem, target = study_problem("small", 1)
    experiment = cell_experiment(Cell("small", "1_mbit", "fedbuff", "none"), 0.1, 1, target.level)
    crowded = replace(experiment, strategy=replace(experiment.strategy, concurrency=11))
    outcome = run_to_target(crowded, problem, target)
    assert outcome.verdict == "refused"
    assert "concurrency" in outcome.reason


def test_few_points_are_kept_of_a_long_run():
    outcome, *_ = _run("none", rate=0.003, budget=Budget(updates=2000))
    assert 10 < len(outcome.points) <= MOST_POINTS + 2


def test_a_target_is_a_share_of_the_way():
    target = Target(start=5.0, least=1.0, remaining=0.25)
    assert target.level == 2.0
    assert target.left(2.0) == 0.25
