"""A run that stops early says why, stops at the same place when resumed, and verifies."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget
from asyncfed.data import Holdout
from asyncfed.engine.stopping import Stopping, StoppingMonitor
from asyncfed.experiment import changed, differences


def stopping_experiment(small, **how):
    rules = {"metric": "validation_loss", "patience": 3, "min_improvement": 0.5, **how}
    return small(budget=Budget(rounds=200), holdout=Holdout(validation=0.3, test=0.2), stopping=Stopping(**rules))


def stopping_run(small, out=None, **how):
    return af.run(stopping_experiment(small, **how), out=out)


def test_patience_ends_a_run_that_no_longer_improves(small):
    run = stopping_run(small)
    losses = run.evaluations["validation_loss"]
    assert run.verdict == "finished"
    assert run.reason.startswith("stopped early: validation_loss has not improved in 3 evaluations (best")
    assert 4 <= len(losses) < 200
    best, without = np.inf, 0
    for number, loss in enumerate(losses):
        best, without = (loss, 0) if loss < best - 0.5 else (best, without + 1)
        assert (without >= 3) == (number == len(losses) - 1)


def test_a_target_ends_a_run(small):
    first = stopping_run(small, patience=None, target=1e9)
    assert first.evaluations["round"].tolist() == [0, 1]
    assert "the target of 1e+09 is reached" in first.reason


def test_energy_ends_a_run(small):
    run = stopping_run(small, patience=None, energy=1000.0)
    assert run.reason == "the energy budget of 1000 J is spent"
    reported = [b for kind, b in zip(*map(run.journal.event_columns().get, ("kind", "b")), strict=True)
                if kind == "report"]  # fmt: skip
    assert sum(reported) >= 1000.0 > sum(reported[:-1])


def test_an_accuracy_is_to_rise():
    watch = StoppingMonitor(Stopping(metric="test_accuracy", patience=2, target=0.9))
    assert [watch.reason({"test_accuracy": a}, r) for r, a in enumerate((0.5, 0.6, 0.55))] == [None] * 3
    assert "best 0.6, in round 1" in watch.reason({"test_accuracy": 0.6}, 3)
    assert "0.95: the target of 0.9" in watch.reason({"test_accuracy": 0.95}, 4)


def test_what_is_no_number_is_no_improvement():
    watch = StoppingMonitor(Stopping(metric="objective", patience=1))
    assert watch.reason({"objective": float("nan")}, 0) is not None


@pytest.mark.parametrize("rules", [{}, {"patience": None, "energy": 900.0}, {"patience": None, "target": 20.0}])
def test_the_reason_is_journalled_and_replays(small, tmp_path, rules):
    path = tmp_path / "run.sqlite"
    run = stopping_run(small, path, **rules)
    events = run.journal.event_columns()
    assert events["kind"][-1] == "stop"
    assert run.reason in events["detail"][-1]
    verification = af.verify(path)
    assert verification.ok, verification.lines


@pytest.mark.parametrize("rules", [{}, {"patience": None, "energy": 900.0}])
def test_an_interrupted_run_stops_where_it_would_have(small, tmp_path, rules):
    whole = stopping_run(small, **rules)
    path = tmp_path / "run.sqlite"
    run, stops = _two_steps(path, lambda **how: af.run(whole.experiment, out=path, **how)), 1
    while not run.finished:
        run, stops = _two_steps(path, lambda **how: af.resume(path, **how)), stops + 1
    assert stops > 3
    assert run.sha256 == whole.sha256
    assert run.reason == whole.reason


def _two_steps(path, go_on):
    """Let two things happen, one at a time, and give up."""
    from asyncfed.sim.simulation import Simulation

    advance, steps = Simulation.advance, iter(range(2))

    def give_up(progress):
        if next(steps, None) is None:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulation, "advance", lambda self, arrivals: advance(self, 1))
        try:
            return go_on(watch=give_up, checkpoint_seconds=0.0)
        except KeyboardInterrupt:
            return af.load(path)


def test_when_it_is_measured_is_part_of_a_run_that_measurements_stop(small, tmp_path):
    path = tmp_path / "run.sqlite"
    run = stopping_run(small, path)
    other = af.replace(run.experiment, evaluation=af.Evaluation(every=2))
    with pytest.raises(JournalError, match=r"evaluation\.every: 1 -> 2"):
        af.resume(path, experiment=other)


@pytest.mark.parametrize(("how", "words"), [
    ({}, "stopping has no rule; set stopping.patience"),
    ({"patience": 0}, "stopping.patience is 0; it must be at least 1"),
    ({"energy": -1.0}, "stopping.energy is -1.0; it must be a positive"),
    ({"patience": 1, "min_improvement": -1.0}, "stopping.min_improvement is -1.0"),
    ({"patience": 1, "min_progress": 1.0}, "stopping.min_progress is 1.0"),
])  # fmt: skip
def test_bad_rules_are_refused(how, words):
    with pytest.raises(ConfigError, match=words):
        Stopping(**how)


def test_rules_about_what_is_not_measured_are_refused_before_anything_is_written(small, tmp_path):
    path = tmp_path / "run.sqlite"
    with pytest.raises(ConfigError, match=r'"validation_loss", which needs a \[holdout\]'):
        af.run(small(stopping=Stopping(patience=2)), out=path)
    with pytest.raises(ConfigError, match=r'"objectiv"\. Did you mean "objective"\?'):
        af.run(small(stopping=Stopping(metric="objectiv", patience=2)), out=path)
    seldom = small(stopping=Stopping(metric="objective", patience=2), evaluation=af.Evaluation(every=0))
    with pytest.raises(ConfigError, match=r"evaluation\.every is 0, so stopping would never be decided"):
        af.run(seldom, out=path)
    assert not path.exists()


def noisy_run(small, out=None, keep="best"):
    """The last model is not the best: the rate is so large that losses go up and down."""
    rules = Stopping(metric="validation_loss", patience=40, keep=keep)
    experiment = small(budget=Budget(rounds=300), holdout=Holdout(validation=0.3, test=0.2), stopping=rules)
    return af.run(changed(experiment, {"strategy.work.learning_rate": 0.1}), out=out)


def test_the_best_model_is_kept(small, tmp_path):
    path = tmp_path / "run.sqlite"
    run = noisy_run(small, path)
    losses = run.evaluations["validation_loss"]
    assert run.kept == int(np.argmin(losses)) < len(losses) - 1
    assert run.final["validation_loss"] == losses.min()
    assert run.problem.evaluate(run.params)["validation_loss"] == losses.min()
    assert noisy_run(small, keep="last").final["validation_loss"] == losses[-1]
    assert af.verify(path).ok
    assert af.load(path).sha256 == run.header["sha256"]


def test_the_best_model_survives_interruptions(small, tmp_path):
    whole = noisy_run(small)
    path = tmp_path / "run.sqlite"
    run = _two_steps(path, lambda **how: af.run(whole.experiment, out=path, **how))
    while not run.finished:
        run = _two_steps(path, lambda **how: af.resume(path, **how))
    assert run.sha256 == whole.sha256
    assert run.kept == whole.kept


def test_an_improvement_may_be_a_share_of_the_progress():
    monitor = StoppingMonitor(Stopping(metric="objective", patience=2, min_progress=0.1))
    values = (100.0, 50.0, 46.0, 44.0, 40.1, 39.9)
    reasons = [monitor.reason({"objective": value}, number) for number, value in enumerate(values)]
    # From 100 to 50, an improvement is 5: 46 is none, 44 is one; from then on it is 4.4, a tenth of 44.
    words = "converged: objective improved by less than 10 % in 2 evaluations, since round 3 (44)"
    assert reasons == [None] * 5 + [words]


def test_a_file_from_before_a_setting_existed_is_the_same_experiment(small, tmp_path):
    path = tmp_path / "run.sqlite"
    run = stopping_run(small, path)
    rules = {"metric": "validation_loss", "patience": 3, "min_improvement": 0.5}
    older = {**run.header["experiment"], "stopping": rules}
    assert differences(older, run.experiment) == []


OVERFIT = Stopping(metric="objective", patience=2, keep="best", overfit_metric="validation_loss")


def walk(rules, rows):
    """What a monitor says of evaluations (objective, validation loss, its error), and which it keeps."""
    monitor, kept = StoppingMonitor(rules), None
    for number, (objective, loss, error) in enumerate(rows):
        metrics = {"objective": objective, "validation_loss": loss, "validation_loss_error": error}
        reason = monitor.reason(metrics, number)
        kept = number if monitor.is_best(metrics) else kept
    return reason, kept


def test_a_rise_on_held_out_rows_within_its_error_does_not_count():
    reason, kept = walk(
        OVERFIT, [(10.0, 10.0, 1.0), (5.0, 4.0, 1.0), (4.0, 4.9, 1.0), (3.0, 4.8, 1.0), (2.0, 5.0, 0.1)]
    )
    assert (reason, kept) == (None, 4)


def test_a_rise_on_held_out_rows_beyond_its_error_stops_the_run_and_keeps_the_model_before_it():
    rows = [(10.0, 10.0, 1.0), (5.0, 4.0, 1.0), (4.0, 4.9, 1.0), (3.0, 5.1, 1.0), (2.0, 6.0, 1.0)]
    reason, kept = walk(OVERFIT, rows)
    assert reason == (
        "stopped early: validation_loss was above its lowest (4, in round 1) by more than its standard error in 2 "
        "evaluations"
    )
    assert kept == 2


def test_a_model_that_a_later_one_shows_to_be_worse_is_not_kept():
    # The second has the best objective, but the third is better by more than the error on held-out rows.
    assert walk(OVERFIT, [(10.0, 10.0, 0.1), (1.0, 5.0, 0.1), (2.0, 4.0, 0.1)]) == (None, 2)


def test_a_run_watches_for_overfitting(small, tmp_path):
    path = tmp_path / "run.sqlite"
    rules = Stopping(metric="objective", patience=10, min_progress=0.2, keep="best", overfit_metric="validation_loss")
    experiment = small(budget=Budget(rounds=200), holdout=Holdout(validation=0.3, test=0.2), stopping=rules)
    run = af.run(experiment, out=path)
    assert run.reason.startswith("converged: objective improved by less than 20 % in 10 evaluations")
    assert run.problem.evaluate(run.params)["objective"] == run.final["objective"]
    assert (run.evaluations["validation_loss_error"] > 0).all()
    assert af.verify(path).ok
    with pytest.raises(ConfigError, match=r'overfit_metric is "validation_loss", which needs a \[holdout\]'):
        af.run(af.replace(experiment, holdout=None))


def test_an_unknown_error_proves_nothing():
    rows = [(3.0, 1.0, float("nan")), (2.0, 5.0, float("nan")), (1.0, 6.0, float("nan"))]
    assert walk(OVERFIT, rows) == (None, 2)


def test_what_rises_after_its_best_has_not_converged():
    rules = Stopping(metric="objective", patience=3, min_progress=1e-5, keep="best")
    for last, words in (
        (1.4, "not converged: objective rose to 1.4 after its best, 1 in round 1. "),
        (1.01, "converged: "),
    ):
        monitor = StoppingMonitor(rules)
        reasons = [
            monitor.reason({"objective": value}, round) for round, value in enumerate((5.0, 1.0, 1.2, 1.3, last))
        ]
        assert reasons[:-1] == [None] * 4
        assert reasons[-1].startswith(words)


def test_a_run_that_stopped_in_the_middle_of_a_decision_can_be_reopened(small, tmp_path):
    """The tickets that the decision would have sent next are out for the server, and were never sent."""
    from asyncfed.engine.checkpoint_check import check_execution_state
    from asyncfed.runs.simulate import simulate

    path = tmp_path / "run.sqlite"
    run = simulate(stopping_experiment(small), out=path, compiled=False)
    state, arrays = run.journal.checkpoint()
    out = {dispatch["ticket"] for dispatch in state["server"]["in_flight"]}
    assert not out <= set(arrays["tickets"].tolist())
    check_execution_state(state, arrays, run.problem.num_clients)
    assert af.resume(path).sha256 == run.sha256
