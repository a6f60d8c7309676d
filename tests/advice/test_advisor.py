"""A search from beginning to end: the same answer however it was interrupted and by how many processes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.advice.conftest import small_experiment, small_search

import asyncfed as af
from asyncfed.advice import advisor
from asyncfed.advice.finalists import DEFAULT
from asyncfed.cli.advise_commands import STRATEGY_NAMES


@pytest.mark.slow
def test_where_a_fifth_of_the_clients_is_ten_times_slower_default_fedavg_is_beaten(tmp_path):
    experiment = small_experiment(num_clients=40, data=af.data.PaperRegression(num_samples=2000, num_features=5))
    advice = advisor.recommend(experiment, experiment.problem(), tmp_path, strategies=["fedasync", "fedbuff"])
    assert advice.beats_synchronous
    assert advice.ratio(advice.winner, DEFAULT).high < 1
    assert advice.target.metric == "validation_loss"


@pytest.mark.slow
def test_finalists_have_the_same_seeds_none_of_which_the_search_used(found):
    advice, _ = found
    assert {advice.baseline, DEFAULT} < advice.finalists.keys()
    assert all(tuple(finalist.runs) == advice.seeds for finalist in advice.finalists.values())
    assert min(advice.seeds) >= 1000


def test_an_interrupted_search_continues_to_the_same_answer(found, tmp_path):
    advice, _ = found
    for stop in (10, 30):

        def interrupt(done, planned, stop=stop):
            if done >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            small_search(tmp_path, watch=interrupt)
    kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "trials").iterdir()}
    again = small_search(tmp_path)
    assert again.to_toml() == advice.to_toml()
    assert again.num_runs == advice.num_runs
    assert len(kept) >= 20
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items()), "what was simulated is not done again"


def test_the_recommended_experiment_can_be_read_and_run(found):
    advice, _ = found
    experiment = af.from_toml(advice.to_toml())
    run = af.run(af.replace(experiment, budget=af.Budget(updates=20)))
    assert run.verdict == "finished"
    assert experiment.seed == 0


def test_delays_without_regard_to_epochs_are_charged_for_them_and_that_is_said(found):
    advice, _ = found
    assert isinstance(advice.experiment.delays, af.delays.PerWork)
    assert "1 epoch; other amounts of local work compute in proportion" in advice.notes[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"objective": "speed"}, r'no objective "speed"'),
        ({"seeds": 1}, "seeds is 1; a confidence interval needs at least 2"),
        ({"workers": 0}, "workers is 0; it must be at least 1"),
        ({"budget": -1.0}, r"budget is -1\.0; it must be a positive"),
        ({"progress": 1.0}, r"progress is 1\.0; it must be above 0 and below 1"),
        ({"strategies": ["fedbuf"]}, r'no strategy "fedbuf". Did you mean "fedbuff"'),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_simulated(settings, words, tmp_path):
    with pytest.raises(af.errors.ConfigError, match=words):
        small_search(tmp_path, **settings)
    assert not list(tmp_path.iterdir())


def test_a_clock_that_stands_still_is_refused(tmp_path):
    still = small_experiment(delays=af.delays.Delays(compute=af.delays.Constant(value=0.0)))
    with pytest.raises(af.errors.ConfigError, match="takes no virtual time"):
        advisor.recommend(still, still.problem(), tmp_path, workers=1)


def test_where_nothing_is_learnt_that_is_said(tmp_path):
    wild = small_experiment(strategy=af.strategies.FedAsync(work=af.Work(learning_rate=1e6)))
    with pytest.raises(af.errors.ConfigError, match=r"no run lowered validation_loss .* give a longer --budget"):
        advisor.recommend(wild, wild.problem(), tmp_path, workers=1, budget=5.0, strategies=["fedasync"])


def test_the_command_line_names_the_same_strategies():
    assert tuple(STRATEGY_NAMES.split(",")) == advisor.STRATEGIES


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing(found, tmp_path):
    advice, _ = found
    assert small_search(tmp_path, workers=2).to_toml() == advice.to_toml()


COMMAND = [
    *(sys.executable, "-m", "asyncfed", "advise", "small.toml", "--strategies", "fedasync,fedbuff", "--seeds", "3"),
    *("--budget", "40", "--workers", "2", "--out-dir", "advice"),
]


@pytest.mark.slow
def test_killed_at_any_moment_it_continues_to_the_same_bytes(tmp_path):
    chance = random.Random(5)
    written = []
    for name, kills in (("whole", 0), ("killed", 4)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "small.toml").write_text(af.to_toml(small_experiment()))
        for _ in range(kills):
            process = subprocess.Popen(COMMAND, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
            time.sleep(chance.uniform(2.0, 6.0))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run(COMMAND, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        written.append(Path(folder / "advice" / "recommended.toml").read_bytes())
    assert written[0] == written[1]
