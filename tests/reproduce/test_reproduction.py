"""Reproducing: each run once, continued after any interruption, to the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.reproduce import reproduction
from asyncfed.reproduce.claims import CLAIMS
from asyncfed.reproduce.figures import figure_data
from asyncfed.reproduce.reproduction import delete_finished_runs, open_workers, plan_reproduction, simulate_missing
from asyncfed.reproduce.verdicts import assess_claims


def data_bytes(wanted):
    """What the figures and verdicts of a reproduction say, as JSON."""
    figures = [figure_data(figure, wanted.runs_of(figure), "") for figure in wanted.figures]
    found = assess_claims({figure.number: (figure, wanted.runs_of(figure)) for figure in wanted.figures})
    return reproduction.to_json([figures, found])


def test_figures_share_their_runs(tmp_path):
    alone = plan_reproduction(tmp_path, only=["5"]).experiments
    assert plan_reproduction(tmp_path, only=["2", "5"]).experiments == alone
    assert len(alone) == 2 * 8 * 5


def test_the_longest_runs_come_first(tmp_path):
    costs = [reproduction.cost(e) for e in plan_reproduction(tmp_path, only=["5", "9"]).experiments.values()]
    assert costs == sorted(costs, reverse=True)


def test_every_claim_is_shown_by_a_figure_that_exists(tmp_path):
    numbers = {figure.number for figure in plan_reproduction(tmp_path).figures}
    assert {claim.figure for claim in CLAIMS} <= numbers
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)


def test_finished_runs_are_not_done_again(finished, monkeypatch):
    monkeypatch.setattr(reproduction, "run_columns", lambda *job: pytest.fail("it was done already"))
    with open_workers(1) as pool:
        simulate_missing(finished, pool)


@pytest.mark.slow
def test_a_reproduction_continued_by_two_processes_says_the_same(finished, tmp_path):
    again = replace(finished, out=tmp_path)
    with open_workers(1) as pool:
        simulate_missing(again, pool)
    for experiment in list(again.experiments.values())[::2]:
        again.cache.path(experiment).unlink()
    assert len(again.missing()) == len(again.experiments) // 2
    with open_workers(2) as pool:
        simulate_missing(again, pool)
    assert data_bytes(again) == data_bytes(finished)


def test_progress_counts_to_the_cost_of_what_was_missing(finished, tmp_path):
    again, seen = replace(finished, out=tmp_path), []
    with open_workers(1) as pool:
        simulate_missing(again, pool, seen.append)
    assert seen[-1] == sum(map(reproduction.cost, again.experiments.values()))
    assert seen == sorted(seen)


def test_forgetting_deletes_the_runs(finished, tmp_path):
    again = replace(finished, out=tmp_path)
    with open_workers(1) as pool:
        simulate_missing(again, pool)
    delete_finished_runs(again)
    assert len(again.missing()) == len(again.experiments)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"seeds": 0}, "seeds is 0; it must be at least 1"), ({"only": ["enery_regression"]}, '"energy_regression"')],
)
def test_wrong_options_are_refused(tmp_path, options, complaint):
    with pytest.raises(ConfigError, match=complaint):
        plan_reproduction(tmp_path, **options)


def test_workers_must_be_positive():
    with pytest.raises(ConfigError, match="workers is 0"), open_workers(0):
        pass


def run_command(out, *options):
    return [sys.executable, "-m", "asyncfed", "reproduce", "--quick", "--out-dir", str(out), *options]


@pytest.mark.slow
def test_ctrl_c_stops_within_a_moment_and_says_how_to_go_on(tmp_path):
    going = subprocess.Popen(
        run_command(tmp_path, "--only", "9", "--seeds", "50"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("runs/*.npz")):
        assert going.poll() is None, "it ended before it could be stopped"
        time.sleep(0.02)
    going.send_signal(signal.SIGINT)
    _, complaint = going.communicate(timeout=20)
    assert going.returncode == 130
    assert complaint == "stopped; the same command continues\n"


@pytest.mark.slow
def test_a_killed_reproduction_continues_to_the_same_bytes(tmp_path):
    first = subprocess.Popen(
        run_command(tmp_path / "killed", "--only", "6"), stdout=subprocess.DEVNULL, start_new_session=True
    )
    kept = tmp_path / "killed" / "runs"
    while not list(kept.glob("*.npz")):
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    total = len(plan_reproduction(tmp_path / "killed", quick=True, only=["6"]).experiments)
    assert 0 < len(list(kept.glob("*.npz"))) < total
    for out in ("killed", "whole"):
        subprocess.run(run_command(tmp_path / out, "--only", "6"), check=True, stdout=subprocess.DEVNULL)
    for part in ("data/06_comparison_regression.json", "verdicts.json"):
        assert (tmp_path / "killed" / part).read_bytes() == (tmp_path / "whole" / part).read_bytes()


@pytest.mark.slow
def test_the_quick_command_from_end_to_end(tmp_path):
    subprocess.run(run_command(tmp_path), check=True, stdout=subprocess.DEVNULL)
    names = sorted(path.stem for path in (tmp_path / "data").glob("*.json"))
    assert names == [figure.name for figure in plan_reproduction(tmp_path, quick=True).figures]
    for ending in ("png", "pdf"):
        assert sorted(path.stem for path in (tmp_path / "figures").glob(f"*.{ending}")) == names
    judged = json.loads((tmp_path / "verdicts.json").read_text())
    assert len(judged) == sum(len(claim.readings) for claim in CLAIMS)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert list(settings["figures"]) == names
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_published_reading_lands_in_order_between_the_published_fractions(tmp_path):
    """More clients, lower loss: at round 20 of the regression the mean loss falls from fraction to fraction."""
    wanted = plan_reproduction(tmp_path, only=["5"], seeds=10)
    with open_workers(None) as pool:
        simulate_missing(wanted, pool)
    [spec] = wanted.figures
    panel = figure_data(spec, wanted.runs_of(spec), "").panels[0]
    lines = {series.label: series.y[series.x.index(20.0)] for series in panel.series if series.label[0].isdigit()}
    losses = [lines[f"{percent}%"] for percent in (20, 30, 40, 50, 60, 70, 80, 90)]
    assert losses == sorted(losses, reverse=True)
