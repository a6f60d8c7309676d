"""Run: what a run left behind."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential, FunctionDelays
from asyncfed.runs.result import params_sha256
from asyncfed.strategies import FedAvg

DELAYS = Delays(compute=Exponential(mean=1.0))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


def test_a_run_says_how_it_went(small):
    run = af.run(small(delays=DELAYS))
    assert (run.verdict, run.reason, run.advice, run.finished) == ("finished", "all 3 rounds are done", "", True)
    assert run.path is None
    assert run.experiment == small(delays=DELAYS)
    assert run.rounds["round"].tolist() == [1, 2, 3]
    assert run.evaluations["round"].tolist() == [0, 1, 2, 3]
    assert {"objective", "pooled_loss", "first_client_loss", "distance"} <= set(run.evaluations)
    problem = small().problem()
    assert run.evaluations["objective"][-1] == problem.evaluate(run.params)["objective"]
    assert run.evaluations["distance"][-1] == pytest.approx(np.linalg.norm(run.params - problem.optimum()))
    assert repr(run).startswith("Run(small: finished, round 3, objective ")


@pytest.mark.parametrize("strategy", [None, FedAvg(cohort_size=3, work=Work(batch_size=4))])
def test_participation_adds_up_to_the_updates(small, strategy):
    how = {} if strategy is None else {"strategy": strategy}
    run = af.run(small(delays=DELAYS, budget=Budget(rounds=5), **how))
    counts = run.participation()
    assert counts.shape == (4,)
    assert counts.sum() == run.rounds["updates"][-1]
    assert (counts > 0).sum() == run.rounds["participants"][-1]


def test_a_run_read_from_its_file_is_the_run_that_was_written(small, path):
    written = af.run(small(delays=DELAYS), out=path)
    read = af.load(path)
    assert read.path == path
    assert read.sha256 == written.sha256 == read.header["sha256"]
    assert read.sha256["params"] == params_sha256(read.params)
    assert read.params.tolist() == written.params.tolist()
    for name, values in written.rounds.items():
        assert read.rounds[name].tolist() == values.tolist()


def test_the_file_does_not_matter_to_the_run(small, path):
    assert af.run(small(), out=path).sha256 == af.run(small()).sha256


def test_another_model_has_another_digest(small):
    one = af.run(small())
    assert params_sha256(one.params) != params_sha256(one.params + 1e-12)
    assert params_sha256(one.params) == params_sha256(one.params.copy()[::-1][::-1])


def test_a_run_can_be_drawn(small):
    from matplotlib.figure import Figure

    figure = af.run(small(delays=DELAYS)).plot()
    assert isinstance(figure, Figure)
    assert figure.axes


def test_resuming_a_finished_run_changes_nothing(small, path):
    before = af.run(small(), out=path)
    sha = before.sha256
    before.journal.close()
    contents = path.read_bytes()
    again = af.resume(path)
    assert (again.verdict, again.sha256) == ("finished", sha)
    again.journal.close()
    assert path.read_bytes() == contents


def interrupted(experiment, path, **how):
    """A run whose watcher gives up at its first look."""

    def give_up(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(experiment, out=path, watch=give_up, **how)


def test_a_run_broken_off_before_its_first_checkpoint_has_no_model_but_can_be_resumed(small, path):
    experiment = small(budget=Budget(rounds=500))
    interrupted(experiment, path)
    run = af.load(path)
    assert (run.verdict, run.finished) == ("interrupted", False)
    assert run.participation().tolist() == [0, 0, 0, 0]
    with pytest.raises(JournalError, match="holds no model yet"):
        run.params  # noqa: B018
    assert "nan" in repr(run)
    assert af.resume(path).sha256 == af.run(experiment).sha256


def test_delays_of_ones_own_must_be_given_again(small, path):
    experiment = small(budget=Budget(rounds=500))
    delays = FunctionDelays(lambda client, ticket, work: 1.0 + client).bind(4, 0)
    interrupted(experiment, path, delays=delays)
    with pytest.raises(JournalError, match=r"delays of your own.*af\.resume\(path, delays=\.\.\.\)"):
        af.resume(path)
    assert af.resume(path, delays=delays).sha256 == af.run(experiment, delays=delays).sha256


def test_a_problem_of_ones_own_must_be_given_again(small, path):
    experiment, problem = small(budget=Budget(rounds=500)), small(seed=8).problem()
    interrupted(experiment, path, problem=problem)
    with pytest.raises(JournalError, match=r"run on other data or another loss.*Give the same problem again"):
        af.resume(path)
    assert af.resume(path, problem=problem).sha256 == af.run(experiment, problem=problem).sha256


def test_threads_must_be_positive(small):
    with pytest.raises(ConfigError, match="threads is 0; it must be at least 1"):
        af.run(small(), threads=0)


def test_watching_a_run_shows_it_growing(small):
    seen = []
    af.run(small(budget=Budget(rounds=200)), watch=seen.append)
    assert [p.updates for p in seen] == sorted(p.updates for p in seen)
    assert (seen[-1].rounds, seen[-1].updates) == (200, 400)
    assert seen[-1].objective < seen[0].objective * 10
