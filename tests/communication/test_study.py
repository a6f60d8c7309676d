import json
import os
import signal
import subprocess
import sys
import time

import pytest

from asyncfed import api
from asyncfed.communication import study
from asyncfed.communication.cells import LINKS, Cell, cell_experiment
from asyncfed.communication.codecs import CODECS, NO_CODEC
from asyncfed.communication.entry import TUNING_SEED, study_problem
from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.strategies import NUM_CLIENTS, STRATEGIES
from asyncfed.communication.study import ENTRIES, plan_study, run_study
from asyncfed.communication.tables import write_tables
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.experiment import from_toml, to_toml


def test_the_full_study_has_every_codec_with_every_strategy():
    plan = plan_study()
    fitting = sum(codec.fits(problem) for problem in PROBLEMS for codec in CODECS.values())
    assert len(plan.requests) == len(STRATEGIES) * fitting
    assert {request.codec for request in plan.requests if request.problem == "digits"} == set(CODECS)
    assert all(request.links == tuple(LINKS) for request in plan.requests)
    assert all(TUNING_SEED not in request.seeds for request in plan.requests)
    assert {request.problem for request in plan.requests} >= {"regression", "digits"}


def test_sending_everything_is_always_there_and_first():
    plan = plan_study(["regression"], ["top_k_ef"], ["afl"], ["10_mbit"], seeds=1)
    assert [request.codec for request in plan.requests] == [NO_CODEC, "top_k_ef"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"problems": ["regresion"]}, 'no problem "regresion". Did you mean "regression"'),
        ({"codecs": ["topk_ef"]}, 'no codec "topk_ef". Did you mean "top_k_ef"'),
        ({"strategies": ["fedbuf"]}, 'no strategy "fedbuf". Did you mean "fedbuff"'),
        ({"links": ["2_mbit"]}, 'no link "2_mbit"'),
        ({"seeds": 0}, "seeds is 0"),
        ({"seeds": 1000}, "seeds is 1000"),
    ],
)
def test_what_there_is_not_is_refused(wrong, words):
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        plan_study(**wrong)


def test_every_cell_can_be_written_down_and_its_strategy_takes_the_clients():
    for strategy in STRATEGIES:
        for codec in CODECS:
            experiment = cell_experiment(Cell("regression", "1_mbit", strategy, codec), 0.01, 1, 2.0)
            experiment.strategy.check(NUM_CLIENTS)
            assert from_toml(to_toml(experiment)) == experiment


def test_what_is_sent_is_what_the_parts_say():
    assert all(codec.summary and codec.name == name for name, codec in CODECS.items())
    assert all(strategy.summary and strategy.name == name for name, strategy in STRATEGIES.items())


def test_the_rate_with_the_fewest_bytes_is_taken(small_study):
    for entry in small_study[0].entries:
        assert [trial.rate for trial in entry.trials] == list(PROBLEMS["small"].rates)
        scores = {trial.rate: trial.score for trial in entry.trials}
        assert scores[entry.rate] == min(scores.values())


def test_nothing_is_computed_twice(small_study, small_plan, small_folder, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(study, "compute_entry", refuse)
    assert run_study(small_plan, small_folder, 1) == small_study[0]


def test_what_was_done_before_a_kill_is_not_done_again(small_study, small_plan, small_folder, tmp_path, monkeypatch):
    """As after a kill in the middle of a write: some lines are there, and a piece of the next."""
    lines = (small_folder / ENTRIES).read_bytes().splitlines(keepends=True)
    (tmp_path / ENTRIES).write_bytes(b"".join(lines[:4]) + lines[4][:50])
    done = []
    compute = study.compute_entry
    monkeypatch.setattr(study, "compute_entry", lambda *arguments: done.append(1) or compute(*arguments))
    assert run_study(small_plan, tmp_path, 1) == small_study[0]
    assert len(done) == len(lines) - 4


def test_a_line_of_another_code_is_computed_anew(small_plan, small_folder, small_study, tmp_path, monkeypatch):
    few = replace(small_plan, requests=small_plan.requests[:1])
    (tmp_path / ENTRIES).write_bytes((small_folder / ENTRIES).read_bytes())
    monkeypatch.setattr(study, "study_digest", lambda: "another")
    done = []
    compute = study.compute_entry
    monkeypatch.setattr(study, "compute_entry", lambda *arguments: done.append(1) or compute(*arguments))
    assert run_study(few, tmp_path, 1).entries == small_study[0].entries[:1]
    assert len(done) == 1


def test_a_cell_run_by_hand_gives_the_studys_own_numbers(small_study):
    row = next(row for row in small_study[1] if row.cell.codec == "top_k_ef")
    _, target = study_problem("small", 1)
    written = from_toml(to_toml(cell_experiment(row.cell, row.rate, 1, target.level)))
    run = api.run(written, progress=False)
    last = row.runs[0].points[-1]
    assert run.evaluations["updates"][-1] == last.uploads
    assert run.evaluations["elapsed"][-1] == last.seconds
    assert target.left(run.evaluations["objective"][-1]) == last.left


def test_tables_have_a_row_for_each_cell(small_study, tmp_path):
    results, rows = small_study
    table, claims, everything = write_tables(results, rows, tmp_path)
    head, *lines = table.read_text().splitlines()
    assert len(lines) == len(rows) == 6
    assert head.startswith("problem,link,strategy,codec,learning_rate,verdict,reason,seeds,reached,least_left")
    assert len(claims.read_text().splitlines()) == 1 + 3
    assert len(json.loads(everything.read_text())["entries"]) == len(results.entries)


COMMAND = [
    *(sys.executable, "-m", "asyncfed", "communication", "--problems", "regression", "--strategies", "fedbuff,afl"),
    *("--codecs", "top_k_ef,sign_ef", "--links", "1_mbit", "--seeds", "2", "--out-dir"),
]
WRITTEN = ("results.csv", "claims.csv", "results.json", "communication.html", "regression_costs.png")


@pytest.mark.slow
def test_workers_and_kills_change_no_byte(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    subprocess.run([*COMMAND, str(one), "--workers", "1"], check=True, capture_output=True)
    process = subprocess.Popen(
        [*COMMAND, str(two), "--workers", "2"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    while not (two / ENTRIES).exists() or len((two / ENTRIES).read_bytes().splitlines()) < 2:
        time.sleep(0.02)
        assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (two / "results.csv").exists()
    subprocess.run([*COMMAND, str(two), "--workers", "2"], check=True, capture_output=True)
    for name in WRITTEN:
        assert (two / name).read_bytes() == (one / name).read_bytes(), name
