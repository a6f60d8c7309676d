import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asyncfed import api
from asyncfed.analysis.csv_text import csv_text
from asyncfed.arena import arena, entry
from asyncfed.arena.arena import BASELINE, plan_arena, run_arena
from asyncfed.arena.cells import DELAY_NAMES, Cell
from asyncfed.arena.problems import PROBLEMS
from asyncfed.arena.results_store import ENTRIES, RUNS
from asyncfed.arena.tables import flat_rows, write_tables
from asyncfed.arena.tuning import best_trial
from asyncfed.arena.written_cells import entry_toml
from asyncfed.core.errors import ConfigError
from asyncfed.experiment import from_toml
from asyncfed.strategies.algorithm import algorithms


def test_the_full_arena_has_every_algorithm_in_every_cell():
    plan = plan_arena()
    assert plan.strategies == tuple(algorithms())
    assert len(plan.cells) == 72 == len(PROBLEMS) * len(DELAY_NAMES) * 3
    assert set(plan.seeds).isdisjoint(entry.TUNING_SEEDS)


def test_the_baseline_is_always_there():
    assert BASELINE in plan_arena(strategies=["fedbuff"]).strategies


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"problems": ["rigde"]}, 'no problem "rigde". Did you mean "ridge"'),
        ({"delays": ["none"]}, 'no delays "none"'),
        ({"splits": ["label"]}, 'no split "label"'),
        ({"strategies": ["fedbuf"]}, 'no strategy "fedbuf". Did you mean "fedbuff"'),
        ({"seeds": 0}, "seeds is 0"),
        ({"trials": 0}, "trials is 0"),
    ],
)
def test_what_there_is_not_is_refused(wrong, words):
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        plan_arena(**wrong)


def test_every_strategy_is_tuned_alike_and_measured_on_fresh_seeds(small_arena, small_plan):
    results, _ = small_arena
    assert [(e.cell, e.strategy) for e in results.entries] == [
        (cell, name) for cell in small_plan.cells for name in small_plan.strategies
    ]
    for one in results.entries:
        assert len(one.trials) == small_plan.num_trials
        assert sum(len(trial.again) for trial in one.trials) == 2 * 2
        assert len(one.runs) == len(small_plan.seeds)
        best = best_trial(one.trials)
        assert (one.rate, one.steps) == (best.rate, best.steps)
    assert len({one.limit for one in results.entries}) == 1


def test_who_never_reaches_the_target_is_shown_last_with_how_far_it_came(small_arena):
    by_name = {row.entry.strategy: row for row in small_arena[1]}
    published = by_name["published"]  # its clients never download
    assert published.verdict == "not reached"
    assert published.reason
    assert 0 < published.left <= 1
    assert published.measures["time"].standing.rank == 3
    assert published.measures["time"].standing.group is None
    assert published.measures["time"].cost is None
    assert by_name["fedasync"].measures["time"].ratio.mean < 1


def test_nothing_is_computed_twice(small_arena, small_plan, small_folder, monkeypatch):
    results, _ = small_arena

    def refuse(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(arena, "compute_entry", refuse)
    assert run_arena(small_plan, small_folder, 1) == results


def test_runs_that_were_done_before_a_kill_are_not_done_again(
    small_arena, small_plan, small_folder, tmp_path, monkeypatch
):
    """As after a kill in the middle of an entry: its line is missing, some of its runs have theirs, one is cut off."""
    lines = (small_folder / RUNS).read_bytes().splitlines(keepends=True)
    half = len(lines) // 2
    (tmp_path / RUNS).write_bytes(b"".join(lines[:half]) + lines[half][:40])
    entries = (small_folder / ENTRIES).read_bytes().splitlines(keepends=True)
    (tmp_path / ENTRIES).write_bytes(entries[0])
    done = []
    run = entry.run_to_targets
    monkeypatch.setattr(entry, "run_to_targets", lambda *arguments: done.append(1) or run(*arguments))
    results = run_arena(small_plan, tmp_path, 1)
    assert results == small_arena[0]
    assert len(done) == len(lines) - half
    assert len((tmp_path / RUNS).read_bytes().splitlines()) == len(lines) + 1


def test_the_settings_of_a_refusing_strategy_are_shown_as_refused(tmp_path, monkeypatch):
    def refuse(name, problem, rate, steps):
        if name != BASELINE:
            raise ConfigError("mixing is 7; it must be at most 1.")
        return make(name, problem, rate, steps)

    make = entry.make_strategy
    monkeypatch.setattr(entry, "make_strategy", refuse)
    plan = plan_arena(["quadratic"], ["equal"], ["iid"], ["fedbuff"], seeds=1, trials=1)
    _, refused = sorted(run_arena(plan, tmp_path, 1).entries, key=lambda one: one.strategy == "fedbuff")
    assert {run.verdict for run in refused.runs} == {"refused"}
    assert "mixing is 7" in refused.runs[0].reason


def test_a_cell_run_by_hand_gives_the_arenas_own_number(small_arena):
    fedasync = next(one for one in small_arena[0].entries if one.strategy == "fedasync")
    run = api.run(from_toml(entry_toml(fedasync)), progress=False)
    assert run.evaluations["elapsed"][-1] == fedasync.runs[0].time
    assert int(run.evaluations["updates"][-1]) <= fedasync.runs[0].updates
    assert "target" in run.reason


def test_tables_have_a_row_for_each_cell_and_strategy(small_arena, tmp_path):
    results, rows = small_arena
    table, everything = write_tables(results, rows, tmp_path)
    head, *lines = table.read_text().splitlines()
    assert len(lines) == len(results.entries)
    assert head.startswith("problem,delays,split,strategy,family,timing,verdict,reason")
    assert len(json.loads(everything.read_text())["entries"]) == len(results.entries)
    assert csv_text(flat_rows(rows)) == table.read_text()


def test_cells_have_a_name():
    assert Cell("digits", "equal", "iid").key == "digits/equal/iid"


COMMAND = [
    *(sys.executable, "-m", "asyncfed", "arena", "--problems", "quadratic", "--delays", "stragglers"),
    *("--splits", "skew,iid", "--strategies", "fedasync,fedbuff", "--seeds", "2", "--trials", "3", "--out-dir"),
]
WRITTEN = ("results.csv", "results.json", "arena.html", "arena.png")


@pytest.mark.slow
def test_workers_and_kills_change_no_byte(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    subprocess.run([*COMMAND, str(one), "--workers", "1"], check=True, capture_output=True)
    process = subprocess.Popen(
        [*COMMAND, str(two), "--workers", "2"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    while not (two / RUNS).exists() or len((two / RUNS).read_bytes().splitlines()) < 20:
        time.sleep(0.02)
        assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = (two / RUNS).read_bytes().splitlines()
    assert not (two / "results.csv").exists()
    subprocess.run([*COMMAND, str(two), "--workers", "2"], check=True, capture_output=True)
    for name in WRITTEN:
        assert (two / name).read_bytes() == (one / name).read_bytes(), name
    assert (two / RUNS).read_bytes().splitlines()[: len(before) - 1] == before[:-1]
    assert sorted((two / RUNS).read_bytes().splitlines())[:3] == sorted((one / RUNS).read_bytes().splitlines())[:3]


def test_the_document_says_what_is_done():
    text = (Path(__file__).parents[2] / "docs" / "arena.md").read_text()
    for problem in PROBLEMS.values():
        assert f"| {100 * problem.remaining:g} % |" in text
        assert f"{problem.most_updates:,}" in text
    assert f"{arena.TRIALS} settings" in text
    assert f"{arena.SEEDS} fresh seeds" in text
