"""One function continues every run."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


def interrupted(experiment, path):
    """A run that is broken off at its first progress report."""

    def break_off(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(experiment, out=path, watch=break_off)


def test_a_simulated_run_has_no_engine(small, path):
    interrupted(small(budget=Budget(rounds=500)), path)
    with pytest.raises(ConfigError, match=r"simulated run, .*takes no engine="):
        af.resume(path, engine=af.LocalEngine())
    assert af.resume(path).finished


def test_a_live_run_has_no_delays_of_ones_own(small, path):
    af.run_live(small(), out=path).journal.close()
    delays = small().delays.bind(4, 0)
    with pytest.raises(ConfigError, match=r"live run, whose delays are real: it takes no delays="):
        af.resume(path, delays=delays)
    assert af.resume(path).finished


def test_the_experiment_must_be_the_same(small, path):
    interrupted(small(budget=Budget(rounds=500)), path)
    other = small(budget=Budget(rounds=500), seed=3)
    with pytest.raises(JournalError, match=r"started with another experiment.*seed: 0 -> 3.*Nothing was changed"):
        af.resume(path, experiment=other)


def test_progress_is_reported_while_a_run_is_continued(small, path):
    interrupted(small(budget=Budget(rounds=500)), path)
    seen = []
    run = af.resume(path, watch=seen.append)
    assert seen[-1].rounds == len(run.rounds["round"]) == 500
