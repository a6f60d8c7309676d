"""The best possible clock beside a run: from which numbers, what it says without a run or without an optimum, how it is
drawn; and that Rennala SGD really reaches its target within the factor of its theorem of the line."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.certificates import certify
from asyncfed.certificates.best_clock import PLANNED_TARGET
from asyncfed.data import Clients
from asyncfed.delays import Constant, Delays, Device, FunctionDelays
from asyncfed.problems import Linear
from asyncfed.report.figures.certificate_figure import certificate_figure
from asyncfed.report.terminal.certificate_text import best_clock_text
from asyncfed.runs.simulate import simulate
from asyncfed.strategies import Rennala
from asyncfed.theory.constants import constants
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.time_complexity import (
    best_clock,
    concurrency_speed_up,
    convex_counts,
    nonconvex_counts,
    rennala_plan,
    strongly_convex_counts,
)

DELAYS = Delays(
    compute=Constant(value=2.0), upload=Constant(value=3.0), devices=(Device(name="slow", share=1.0, slowness=4.0),)
)


def described(small_experiment, **how):
    experiment = small_experiment("fedbuff", work=af.Work(epochs=2, batch_size=8, learning_rate=2e-3))
    return af.replace(experiment, delays=DELAYS, **how)


def test_its_numbers(small_experiment):
    experiment = described(small_experiment)
    found = certify(experiment, seeds=2)
    clock, problem = found.best_clock, experiment.problem()
    size = found.constants
    steps = np.array([2 * -(-int(rows) // 8) for rows in problem.num_examples])
    np.testing.assert_allclose(
        clock.gradient_times, 8.0 / steps
    )  # all devices are slow: 4 * 2 s a ticket, compute only
    assert clock.target == max(run.gap.min() for run in found.runs)
    times = [run.seconds[np.argmax(run.gap <= clock.target)] for run in found.runs]
    assert clock.run_seconds == pytest.approx(np.mean(times))
    common = {
        "smoothness": size.objective_smoothness,
        "gradient_variance": size.gradient_variance_mean,
        "target": clock.target,
    }
    convex = convex_counts(start_distance=size.start_distance, **common)
    strong = strongly_convex_counts(strong_convexity=size.objective_strong_convexity, **common)
    for data in ("same", "different"):
        expected = min(best_clock(clock.gradient_times, counts, data) for counts in (convex, strong))
        assert clock.seconds(clock.target, data) == pytest.approx(expected)
        assert expected < clock.run_seconds
    tickets = experiment.strategy.concurrency
    assert clock.speed_up == concurrency_speed_up([11.0] * len(steps), tickets)
    text = best_clock_text(clock, "").plain
    assert f"{clock.run_seconds:.4g} s until there" in text
    assert "constants and logarithms left out" in text


def test_before_a_run_the_target_is_a_hundredth_of_the_start(small_experiment):
    found = certify(described(small_experiment), seeds=0)
    start = found.constants.start_value - found.constants.optimal_value
    assert found.best_clock.target == pytest.approx(PLANNED_TARGET * start)
    assert found.best_clock.run_seconds is None
    assert "measured" not in best_clock_text(found.best_clock, "").plain


def test_it_is_drawn_beside_the_run(small_experiment):
    panel = certificate_figure(certify(described(small_experiment), seeds=1)).panels[-1]
    assert panel.title.startswith("Time to an objective gap")
    measured, best, same = panel.series
    assert measured.label == "measured"
    assert best.y[-1] == pytest.approx(min(measured.y))
    assert all(fast <= slow for fast, slow in zip(same.x, best.x, strict=True))


def test_without_an_optimum_it_says_so():
    found = certify(af.presets.svm(rounds=2, strategy="fedasync"), seeds=0)
    assert found.best_clock is None
    assert "jumps" in found.best_clock_note
    text = best_clock_text(None, found.best_clock_note).plain
    assert text.startswith("Best possible clock: not known, because")


def test_computing_in_no_time_has_no_clock(small_experiment):
    found = certify(af.replace(small_experiment("sync"), delays=Delays(compute=Constant(value=0.0))), seeds=0)
    assert found.best_clock is None
    assert "no time" in found.best_clock_note


@pytest.mark.parametrize("times", [(1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 10.0, 1000.0)], ids=["equal", "far apart"])
def test_rennala_reaches_its_target_within_the_factor_of_its_theorem(times):
    """On a logistic regression that all clients have the same rows of: L, the gap and the noise are known."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(24, 3))
    labels = np.where(rows @ [1.0, -2.0, 0.5] + rng.normal(size=24) > 0, 1.0, -1.0)
    clients = len(times)
    problem = Linear(Clients.from_lists([rows] * clients, [labels] * clients), "logistic", l2=0.05)
    found = constants(LinearData.of_problem(problem), batch_size=1)
    size = {
        "smoothness": found.objective_smoothness,
        "start_gap": found.start_value - found.optimal_value,
        "gradient_variance": found.uniform_gradient_variance,
        "target": 0.05,
    }
    plan = rennala_plan(times, **size)
    work = af.Work(steps=1, batch_size=1, learning_rate=1.0 / (2.0 * found.objective_smoothness))
    experiment = af.Experiment(
        num_clients=clients,
        strategy=Rennala(changes_per_step=plan.changes_per_step, work=work),
        budget=af.Budget(rounds=plan.steps),
    )
    path = []
    run = simulate(
        experiment,
        problem=problem,
        delays=FunctionDelays(lambda client, ticket, work: times[client]).bind(clients, 0),
        observer=lambda execution, merge: path.append((execution.now, execution.vectors.params)),
    )
    assert run.verdict == "finished"
    step = af.Work(batch_size=24, learning_rate=1e-3)
    norms = np.array([np.sum(((x - problem.local_train(x, 0, step, 0)) / 1e-3) ** 2) for _, x in path])
    assert norms.mean() <= size["target"]  # the theorem's claim, on the mean over the steps
    end = path[-1][0]
    line = best_clock(times, nonconvex_counts(**size), "same")
    assert end <= plan.seconds <= 8.0 * line + plan.seconds / plan.steps
    reached = path[int(np.argmax(np.cumsum(norms) / np.arange(1, len(norms) + 1) <= size["target"]))][0]
    assert reached <= 8.0 * line
