import numpy as np
import pytest

from asyncfed.arena.cells import Cell, cell_experiment, make_strategy
from asyncfed.arena.entry import cell_problem
from asyncfed.arena.measured_run import Targets, find_targets, run_to_targets
from asyncfed.core.record import replace
from asyncfed.strategies.fedavg import FedAvg

CELL = Cell("quadratic", "equal", "iid")


def run(rate, steps=4, limit=None, name="sync", **changes):
    experiment = cell_experiment(CELL, make_strategy(name, CELL.problem, rate, steps), 1, limit)
    return run_to_targets(replace(experiment, **changes), *cell_problem("quadratic", "iid", 1))


def test_the_target_is_a_share_of_the_way_to_the_optimum():
    problem, targets = cell_problem("quadratic", "iid", 1)
    assert targets.left(targets.start) == 1.0
    assert targets.left(targets.least) == 0.0
    assert targets.left(targets.level) == pytest.approx(3e-4)
    assert targets.worst_left(targets.worst_level) == pytest.approx(1e-3)
    assert targets.least == pytest.approx(problem.evaluate(problem.optimum())["objective"])


def test_without_an_optimum_the_least_loss_takes_its_place():
    problem, _ = cell_problem("quadratic", "iid", 1)

    class Unknown:
        init, client_losses = problem.init, problem.client_losses

        def optimum(self):
            return None

    targets = find_targets(Unknown(), 1, 0.1, 0.2, 0.0)
    assert (targets.least, targets.level) == (0.0, pytest.approx(0.1 * targets.start))


def test_a_run_ends_when_both_targets_are_reached():
    done = run(0.05)
    assert done.verdict == "reached"
    assert done.elapsed == max(done.time, done.worst_time)
    assert done.left <= 3e-4
    assert done.bytes > 0
    assert done.energy > 0


def test_a_run_that_is_too_slow_says_how_far_it_came():
    done = run(0.0005, limit=20.0)
    assert (done.verdict, done.time, done.bytes) == ("not reached", None, None)
    assert "20 s" in done.reason
    assert 0 < done.left < 1


def test_a_run_that_gains_nothing_is_given_up():
    done = run(1e-6, steps=1)
    assert done.verdict == "not reached"
    assert "given up after 246 updates: it gained less than 5 % of what was left in 40 measurements" in done.reason


def test_a_run_that_diverges_ends_at_once():
    done = run(10.0)
    assert done.verdict == "diverged"
    assert done.updates < 100


def test_settings_that_a_strategy_refuses_are_an_outcome():
    done = run(0.05, strategy=FedAvg(cohort_size=99))
    assert done.verdict == "refused"
    assert "99" in done.reason


def test_an_error_of_the_program_is_an_outcome(monkeypatch):
    problem, _ = cell_problem("quadratic", "iid", 1)
    experiment = cell_experiment(CELL, make_strategy("sync", "quadratic", 0.05, 4), 1, None)
    done = run_to_targets(experiment, problem, Targets(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))
    assert done.verdict == "failed"
    assert "ZeroDivisionError" in done.reason


def test_the_same_run_gives_the_same_outcome():
    assert run(0.05, name="fedasync") == run(0.05, name="fedasync")


def test_what_is_measured_is_the_model_after_the_merge():
    """The first measurement at or below the target, as the engine's own evaluation after so many updates sees it."""
    from asyncfed.runs.simulate import simulate

    problem, targets = cell_problem("quadratic", "iid", 1)
    experiment = cell_experiment(CELL, make_strategy("fedasync", "quadratic", 0.05, 4), 1, None)
    rows = simulate(experiment, problem=problem, threads=1).journal.evaluation_columns()
    below = np.flatnonzero(np.array(rows["objective"]) <= targets.level)[0]
    assert run_to_targets(experiment, problem, targets).time == rows["elapsed"][below]
