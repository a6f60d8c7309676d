"""Runs with liars: the same bytes whichever way they are made."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.types import Budget
from asyncfed.errors import ConfigError, JournalError

LIARS = Liars(attack=SignFlip(scale=2.0), count=1)


def test_a_run_with_a_liar_ends_worse_and_is_measured_on_the_honest(small):
    honest, lying = af.run(small()), af.run(small(attack=LIARS))
    assert lying.evaluations["objective"][-1] > 1.5 * honest.evaluations["objective"][-1]
    assert lying.problem.evaluate(lying.params)["objective"] == lying.evaluations["objective"][-1]


def test_threads_do_not_matter(small):
    experiment = small(attack=LIARS)
    assert af.run(experiment, threads=1).sha256 == af.run(experiment, threads=2).sha256


def test_a_run_is_resumed_and_verified_to_the_same_bytes(small, tmp_path):
    experiment, path = small(attack=LIARS, budget=Budget(rounds=300)), tmp_path / "run.sqlite"

    def break_off(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        af.run(experiment, out=path, watch=break_off)
    resumed = af.resume(path)
    assert resumed.sha256 == af.run(experiment).sha256
    resumed.journal.close()
    assert af.verify(path).ok


def test_a_problem_of_ones_own_gets_the_liars_too(small, tmp_path):
    experiment, path = small(attack=LIARS), tmp_path / "run.sqlite"
    own = small().problem()
    run = af.run(experiment, problem=own, out=path)
    assert run.sha256 == af.run(experiment).sha256
    assert np.array_equal(run.params, af.run(experiment, problem=experiment.problem()).params)
    run.journal.close()
    assert af.verify(path, problem=own).ok
    with pytest.raises(JournalError, match="other data"):
        af.verify(path, problem=small(seed=5).problem())


def test_workers_lie_the_same(small):
    experiment = small(attack=LIARS)
    with af.Workers(experiment.problem(), 2) as pooled:
        assert af.run(experiment, problem=pooled).sha256 == af.run(experiment).sha256


def test_a_problem_with_other_liars_is_refused(small):
    with pytest.raises(ConfigError, match="liars of its own"):
        af.run(small(attack=LIARS), problem=small(attack=Liars(attack=SignFlip(), count=2)).problem())


def test_what_if_keeps_the_liars(small, tmp_path):
    path = tmp_path / "run.sqlite"
    af.run(small(attack=LIARS), out=path).journal.close()
    runs = af.what_if(path, {"fedasync": af.strategies.FedAsync(concurrency=2)})
    assert runs["fedasync"].experiment.attack == LIARS
