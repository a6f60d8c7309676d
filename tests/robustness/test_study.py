import json
import os
import signal
import subprocess
import sys
import time

import pytest

from asyncfed import api
from asyncfed.core.errors import ConfigError
from asyncfed.experiment import from_toml
from asyncfed.robustness import study
from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.defences import BASES, DEFENCES
from asyncfed.robustness.problems import PROBLEMS
from asyncfed.robustness.scenarios import DELAYS, HONEST, cell_experiment
from asyncfed.robustness.study import CELLS, plan_study, run_study
from asyncfed.robustness.tables import write_tables
from asyncfed.robustness.written_cells import cell_toml


def test_the_full_study_has_every_attack_and_defence_in_every_scenario():
    plan = plan_study()
    for name, problem in PROBLEMS.items():
        own = [cell for cell in plan.cells if cell.scenario.problem == name]
        per_defence = 1 + len(ATTACKS) * len(problem.shares)
        assert len(own) == len(problem.splits) * len(DELAYS) * len(DEFENCES) * per_defence
    assert {cell.share for cell in plan.cells} == {0.0, 0.1, 0.2, 0.3, 0.4}
    assert all((cell.share == 0) == (cell.attack == HONEST) for cell in plan.cells)
    assert len(set(plan.cells)) == len(plan.cells)


def test_undefended_strategies_and_nobody_lying_are_always_there():
    plan = plan_study(["svm"], ["sign_flip"], ["median"], [0.2], ["iid"], ["equal"])
    assert [(cell.defence, cell.share) for cell in plan.cells] == [
        *(("fedbuff", 0.0), ("fedbuff", 0.2)),
        *(("median", 0.0), ("median", 0.2)),
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"problems": ["smv"]}, 'no problem "smv". Did you mean "svm"'),
        ({"attacks": ["sign_flop"]}, 'no attack "sign_flop". Did you mean "sign_flip"'),
        ({"defences": ["medain"]}, 'no defence "medain". Did you mean "median"'),
        ({"splits": ["label"]}, 'no split "label"'),
        ({"delays": ["phones"]}, 'no delays "phones"'),
        ({"shares": [0.5]}, "shares has 0.5"),
        ({"shares": [0.001]}, "shares has 0.001"),
        ({"seeds": 0}, "seeds is 0"),
    ],
)
def test_what_there_is_not_is_refused(wrong, words):
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")):
        plan_study(**wrong)


def test_every_defence_takes_every_problem():
    for problem in PROBLEMS.values():
        for defence in DEFENCES.values():
            defence.make(problem.work).check(20)
            assert defence.base in BASES
            assert defence.summary


def test_every_attack_is_described():
    assert all(attack.summary and attack.name == name for name, attack in ATTACKS.items())


def test_liars_break_undefended_runs_and_a_median_holds(small_study):
    rows = {(row.cell.defence, row.cell.share): row for row in small_study[1]}
    assert not rows["fedbuff", 0.3].held
    assert rows["median", 0.1].held
    assert rows["fedbuff", 0.3].ratio.mean > 3
    assert 0.2 < rows["median", 0.3].lying_arrived < 0.45
    assert rows["fedbuff", 0.0].ratio.mean == pytest.approx(1.0)


def test_nothing_is_computed_twice(small_study, small_plan, small_folder, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(study, "compute_cell", refuse)
    assert run_study(small_plan, small_folder, 1) == small_study[0]


def test_what_was_done_before_a_kill_is_not_done_again(small_study, small_plan, small_folder, tmp_path, monkeypatch):
    """As after a kill in the middle of a write: some lines are there, and a piece of the next."""
    lines = (small_folder / CELLS).read_bytes().splitlines(keepends=True)
    (tmp_path / CELLS).write_bytes(b"".join(lines[:2]) + lines[2][:50])
    done = []
    compute = study.compute_cell
    monkeypatch.setattr(study, "compute_cell", lambda *arguments: done.append(1) or compute(*arguments))
    assert run_study(small_plan, tmp_path, 1) == small_study[0]
    assert len(done) == len(lines) - 2
    assert len((tmp_path / CELLS).read_bytes().splitlines()) == len(lines) + 1


def test_a_line_of_another_code_is_computed_anew(small_plan, small_folder, small_study, tmp_path, monkeypatch):
    (tmp_path / CELLS).write_bytes((small_folder / CELLS).read_bytes())
    monkeypatch.setattr(study, "study_digest", lambda: "another")
    done = []
    compute = study.compute_cell
    monkeypatch.setattr(study, "compute_cell", lambda *arguments: done.append(1) or compute(*arguments))
    assert run_study(small_plan, tmp_path, 1).cells == small_study[0].cells
    assert len(done) == len(small_plan.cells)


def test_a_cell_run_by_hand_gives_the_studys_own_numbers(small_study):
    result = next(one for one in small_study[0].cells if one.cell.attack != HONEST and one.cell.defence == "median")
    seed = small_study[0].plan.seeds[0]
    written = from_toml(cell_toml(result.cell, seed))
    assert written == cell_experiment(result.cell, seed)
    run = api.run(written, progress=False)
    problem = written.problem()
    least = problem.evaluate(problem.optimum())["objective"]
    late = run.evaluations["elapsed"] >= 0.8 * written.budget.elapsed
    assert run.evaluations["objective"][late].mean() - least == pytest.approx(result.runs[0].excess, rel=1e-9)


def test_tables_have_a_row_for_each_cell(small_study, tmp_path):
    results, rows = small_study
    table, breaks, price, everything = write_tables(results, rows, tmp_path)
    head, *lines = table.read_text().splitlines()
    assert len(lines) == len(results.cells)
    assert head.startswith("problem,split,delays,defence,trusted_data,attack,share,verdict,reason,ratio")
    assert len(breaks.read_text().splitlines()) == 1 + 2
    assert len(price.read_text().splitlines()) == 1 + 2
    assert len(json.loads(everything.read_text())["cells"]) == len(results.cells)


COMMAND = [
    *(sys.executable, "-m", "asyncfed", "robustness", "--problems", "regression,svm", "--attacks", "sign_flip"),
    *("--defences", "median", "--splits", "iid", "--shares", "0.1,0.2", "--seeds", "2", "--out-dir"),
]
WRITTEN = ("results.csv", "break_points.csv", "costs.csv", "results.json", "robustness.html", "robustness.png")


@pytest.mark.slow
def test_workers_and_kills_change_no_byte(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    subprocess.run([*COMMAND, str(one), "--workers", "1"], check=True, capture_output=True)
    process = subprocess.Popen(
        [*COMMAND, str(two), "--workers", "2"], stdout=subprocess.DEVNULL, start_new_session=True
    )
    while not (two / CELLS).exists() or len((two / CELLS).read_bytes().splitlines()) < 4:
        time.sleep(0.02)
        assert process.poll() is None, "it ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (two / "results.csv").exists()
    subprocess.run([*COMMAND, str(two), "--workers", "2"], check=True, capture_output=True)
    for name in WRITTEN:
        assert (two / name).read_bytes() == (one / name).read_bytes(), name
