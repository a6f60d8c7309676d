import pytest

from asyncfed.core.record import replace
from asyncfed.robustness.measured_run import UpdateCounts, count_updates, measure_run, outcome_of
from asyncfed.robustness.scenarios import HONEST, Cell, Scenario, cell_experiment
from asyncfed.runs.simulate import simulate

NOTHING = UpdateCounts()
MEASURED = {"elapsed": [0.0, 4.0, 8.0, 9.0, 10.0], "objective": [11.0, 2.0, 1.5, 1.25, 1.25]}


def outcome(measured=MEASURED, verdict="finished"):
    return outcome_of(measured, verdict, "why", 1.0, 10.0, 0.1, NOTHING)


def test_the_level_is_a_mean_over_the_end_of_the_run():
    done = outcome()
    assert done.start == 10.0
    assert done.excess == pytest.approx((0.5 + 0.25 + 0.25) / 3)
    assert done.target_time == 4.0
    assert (done.verdict, done.reason, done.accuracy) == ("finished", "", None)


def test_a_run_that_is_not_measured_in_the_end_has_its_last_level():
    assert outcome({"elapsed": [0.0, 4.0], "objective": [11.0, 2.0]}).excess == 1.0


def test_accuracy_is_measured_over_the_same_time():
    assert outcome({**MEASURED, "test_accuracy": [0.1, 0.5, 0.9, 0.6, 0.6]}).accuracy == pytest.approx(0.7)


def test_a_run_that_diverges_has_no_level():
    for done in (outcome(verdict="diverged"), outcome({"elapsed": [0.0, 9.0], "objective": [11.0, None]})):
        assert (done.verdict, done.reason, done.excess) == ("diverged", "why", None)


def test_the_target_may_never_be_reached():
    assert outcome({"elapsed": [0.0, 9.0], "objective": [11.0, 10.0]}).target_time is None


def test_updates_are_counted_by_who_sent_them():
    cell = Cell(Scenario("regression", "iid", "stragglers"), "fedbuff", "sign_flip", 0.3)
    experiment = cell_experiment(cell, 1)
    liars = experiment.attack.choose(20, 1)
    run = simulate(experiment, threads=1)
    counts = count_updates(run.journal, liars)
    assert counts.merged == run.journal.columns("rounds")["updates"][-1]
    assert counts.arrived - counts.merged < 20  # what waits in the buffer at the end
    assert counts.filtered == 0
    assert 0 < counts.lying_merged < counts.merged / 2


def test_settings_that_are_refused_are_an_outcome():
    cell = Cell(Scenario("regression", "iid", "equal"), "fedbuff", HONEST, 0.0)
    experiment = cell_experiment(cell, 1)
    done = measure_run(replace(experiment, num_clients=3), experiment.problem(), 0.0, (), 0.1)
    assert done.verdict == "refused"
    assert "num_clients = 3" in done.reason
    assert done.excess is None


def test_an_error_of_the_program_is_an_outcome():
    done = measure_run(
        cell_experiment(Cell(Scenario("svm", "iid", "equal"), "fedbuff", HONEST, 0.0), 1), 3, 0.0, (), 0.1
    )
    assert done.verdict == "failed"
