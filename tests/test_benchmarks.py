"""Every benchmark in a tiny form: it runs, does the work it says it does, and answers with what the table needs.

No figure is held against a goal here: a busy machine must not fail a test.
"""

import json
import resource
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import asyncfed as af

sys.path.insert(0, str(Path(__file__).parent.parent))  # the benchmarks lie beside the package, not in it

from benchmarks import __main__ as table
from benchmarks import (
    codecs,
    dashboard,
    kernel,
    large_checkpoint,
    large_live,
    limit,
    live,
    long_live,
    measure,
    million,
    networks,
    one_size,
    population,
    probes,
    robust,
    simulator,
    sparse,
    w1,
    w2,
    w3,
    workloads,
)
from benchmarks import table as large_table

STATM = Path("/proc/self/statm")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
needs_c = pytest.mark.skipif(which("cc") is None, reason="there is no C compiler")


def assert_fills_the_table(outcome):
    assert outcome.lines
    for line in outcome.lines:
        assert line.what
        assert line.measured
        assert (line.goal == "") == (line.met is None)
    json.dumps(outcome.numbers)


@needs_c
def test_kernel():
    outcome = kernel.measure(repeats=1)
    assert_fills_the_table(outcome)
    assert len(outcome.numbers) == len(kernel.CASES)
    assert all(numbers["ratio"] > 0 for numbers in outcome.numbers.values())


def test_sparse_trains_to_the_same_models_as_the_dense_kernel_and_a_plain_loop():
    for case in sparse.CASES:
        found = sparse.compare(case, repeats=1, features=300, non_zeros=10)
        assert 0 <= found.pop("largest_difference") < 1e-4
        assert all(nanoseconds > 0 for nanoseconds in found.values())


@pytest.mark.slow
def test_sparse():
    outcome = sparse.measure(repeats=1)
    assert_fills_the_table(outcome)
    assert len(outcome.numbers) == len(sparse.CASES)


@pytest.mark.slow
@needs_torch
def test_w1():
    outcome = w1.measure(rounds=2, torch_updates=1, repeats=1)
    assert_fills_the_table(outcome)
    rates = outcome.numbers["updates_per_second"]
    assert set(rates) == {"AsyncFed, 1 thread", "AsyncFed, all cores", *w1.PEERS}
    assert all(rate["wall"] > 0 and rate["cpu"] > 0 for rate in rates.values())


@pytest.mark.slow
@needs_torch
def test_the_pytorch_loop_learns_what_asyncfed_learns():
    experiment = workloads.w1(rounds=2)
    problem = experiment.problem()
    weights, bias = w1.torch_loop_of(experiment, problem.clients)(10, 1)
    theirs = problem.evaluate(np.append(weights, bias))["objective"]
    ours = problem.evaluate(af.run(experiment, problem=problem, threads=1).params)["objective"]
    start = problem.evaluate(problem.init(0))["objective"]
    assert theirs < start / 2
    assert ours / 3 < theirs < ours * 3


@pytest.mark.slow
@needs_torch
def test_w3():
    outcome = w3.measure(updates=20, torch_updates=5, repeats=1)
    assert_fills_the_table(outcome)
    rates = outcome.numbers["updates_per_second"]
    assert len(rates) == 3 + len(w3.PEERS)
    assert all(rate["wall"] > 0 and rate["cpu"] > 0 for rate in rates.values())


@needs_torch
@pytest.mark.slow
def test_networks_are_measured_against_the_loop_and_by_the_share_of_torch():
    make, rows = networks.convolutional, partial(networks.images, 4, 10)
    outcome = networks.measure(networks.Network("W4", make, rows, 5, 2), updates=4, repeats=1)
    assert 0 < outcome.numbers["share"] < 1
    assert len(outcome.numbers["updates_per_second"]) == 4
    assert [line.ratio is None for line in outcome.lines] == [True, True, False, False, False]


@needs_torch
@pytest.mark.parametrize(
    ("make", "rows", "params"), [("convolutional", "images", 1e5), ("transformer", "sequences", 1e6)]
)
def test_networks_are_of_the_size_they_claim(make, rows, params):
    problem = af.problems.torch(getattr(networks, make), "cross_entropy", getattr(networks, rows)())
    assert problem.num_params == pytest.approx(params, rel=0.02)


def test_w1_is_350_steps_an_update():
    experiment = workloads.w1(rounds=1)
    work, samples = experiment.strategy.work, experiment.problem().num_examples
    assert samples.tolist() == [200] * 10
    assert work.epochs * -(-200 // work.batch_size) == 350


def test_simulator():
    outcome = simulator.measure(rounds=2, repeats=1)
    assert_fills_the_table(outcome)
    assert set(outcome.numbers) == {"ratio", "cpu_us_per_update", "tasks_per_call"}
    assert 1 <= outcome.numbers["tasks_per_call"] <= 5


def test_w2():
    outcome = w2.measure(updates=200, repeats=1)
    assert_fills_the_table(outcome)
    wanted = {f"{name}, journal in {place}" for name in workloads.w2_strategies() for place in ("memory", "file")}
    assert set(outcome.numbers["updates_per_second"]) == wanted


def test_table():
    outcome = large_table.measure(rows=500, repeats=1)
    assert_fills_the_table(outcome)
    assert outcome.numbers["start"]["bar_after_seconds"] < outcome.numbers["start"]["wall_seconds"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count what is written")
def test_large_live():
    outcome = large_live.measure(params=100_000, clients=2, updates=40, repeats=1)
    assert_fills_the_table(outcome)
    for [run] in outcome.numbers["runs"].values():
        assert run["updates"] >= 25
        assert 0.9 <= run["written"] < 3.0  # the first update counted may have been written before
        assert run["cpu_ms"] > 0


def test_long_live():
    outcome = long_live.measure(params=1_000, clients=2, updates=1_500, look_seconds=0.01)
    assert_fills_the_table(outcome)
    assert outcome.numbers["disk"]["largest"] >= outcome.numbers["disk"]["late"] > 0
    assert outcome.numbers["server memory"]["late"] > 10_000_000


def test_large_checkpoint():
    """Run, killed in the middle of an array, resumed and verified; it raises if one of them does not end well."""
    seen = large_checkpoint.measure(params=100_000)
    assert seen["models"] > 3
    assert seen["bytes"] >= 4 * 100_000 * seen["models"]


def test_live():
    outcome = live.measure(clients=2, updates=50, repeats=1)
    assert_fills_the_table(outcome)
    assert all(rate > 0 for rates in outcome.numbers["updates_per_second"].values() for rate in rates)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell a process's time")
def test_dashboard():
    outcome = dashboard.measure(events=3_000, pages=3, updates=2_000, repeats=1)
    assert_fills_the_table(outcome)
    assert outcome.numbers["opening"]["events"] >= 3_000
    assert all(rate > 0 for rates in outcome.numbers["rates"].values() for rate in rates)
    assert len(outcome.numbers["dashboard_cores"]) == 1


def test_the_profile_names_functions():
    text = w2.profile(workloads.w2_strategies(5)["AFL"], updates=20, most=5)
    assert "tottime" in text


def test_million(monkeypatch):
    monkeypatch.setattr(million, "_in_own_process", one_size.figures_of_size)
    outcome = million.measure(sizes=(60, 120), in_flight=20, largest_in_flight=30, updates=200, repeats=1)
    assert_fills_the_table(outcome)
    figures = outcome.numbers["sizes"]
    assert [(each["num_clients"], each["in_flight"]) for each in figures] == [(60, 20), (120, 20), (120, 30)]
    assert set(outcome.numbers["growth"]) == {"without_checkpoints", "with_checkpoints"}


def test_population(monkeypatch):
    monkeypatch.setattr(population, "_in_own_process", population.figures_of_size)
    monkeypatch.setattr(population, "HEARD_FROM", 30)
    outcome = population.measure(few=60, many=10**8, in_flight=20, updates=200, repeats=1)
    assert_fills_the_table(outcome)
    assert len(outcome.lines) == 4


@pytest.mark.slow
def test_one_size_in_a_process_of_its_own_answers_with_its_figures():
    figures = million._in_own_process(60, 20, 200)
    assert (figures["num_clients"], figures["in_flight"], figures["updates"]) == (60, 20, 200)
    assert set(million.MODES) < set(figures)
    assert figures["peak_gigabytes"] > 0


def test_codecs():
    outcome = codecs.measure(num_params=100, repeats=1)
    assert len(outcome.lines) == 2 * 2 * len(codecs.codecs(100))
    assert {line.goal for line in outcome.lines if line.what.startswith(codecs.WITH_GOAL)} >= {"<= 20 ms"}
    assert outcome.numbers["float32"]["bytes"]["sign"] == 13 + 4


def test_robust():
    outcome = robust.measure(num_params=100, repeats=1)
    assert_fills_the_table(outcome)
    assert set(outcome.numbers["ms_per_merge"]["equal weights"]) == {"mean", *robust.RULES}


def test_the_cost_of_an_update_is_that_of_those_between_two_looks():
    experiment = workloads.many_clients(workloads.w2_strategies(20)["AFL"], num_clients=60, updates=1000)
    assert 0 < one_size.cost_of_update(experiment, experiment.problem(), one_size.NEVER) < 1e5


def test_limit():
    outcome = limit.measure(w1_rounds=40, w2_updates=500, repeats=1)
    assert_fills_the_table(outcome)
    assert set(outcome.numbers["ratios"]) == {"w1", "w2"}


@pytest.mark.skipif(not STATM.exists(), reason="this system does not say what a process holds")
def test_peak_memory_is_at_least_what_is_held():
    held = np.ones(10_000_000)
    resident = int(STATM.read_text().split()[1]) * resource.getpagesize() / 1e9
    assert one_size.peak_gigabytes() >= 0.99 * resident > held.nbytes / 1e9  # the kernel counts pages a little late


def test_a_probed_problem_trains_as_the_problem_itself():
    experiment = workloads.w1(rounds=2)
    problem = experiment.problem()
    probe = probes.Probe(problem)
    probed, plain = (af.run(experiment, problem=p, threads=1) for p in (probe, problem))
    assert probed.sha256 == plain.sha256
    assert sum(len(call.jobs.clients) for call in probe.calls) >= 10


def test_jobs_are_run_in_turn_and_the_first_time_does_not_count():
    ran = []
    best = measure.best_in_turn({"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}, repeats=2)
    assert "".join(ran) == "ababab"
    assert set(best) == {"a", "b"}


def test_the_whole_run_prints_a_table_and_writes_its_figures(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(table.QUICK, "simulator", {"rounds": 2, "repeats": 1})
    results = tmp_path / "bench" / "results.json"
    table.main(["--quick", "--only", "simulator"], results)
    assert "bare" in capsys.readouterr().out
    report = json.loads(results.read_text())
    assert {"cpu", "cores", "load_average", "python", "numpy", "numba"} <= set(report["machine"])
    assert set(report["benchmarks"]) == {"simulator"}


def test_an_unknown_benchmark_is_refused_with_the_known_names(capsys):
    with pytest.raises(SystemExit):
        table.main(["--only", "w9"])
    assert "million" in capsys.readouterr().err
