"""Runs and studies on other machines, which are this one here: what they are handed, and that nothing else changes."""

from contextlib import contextmanager

import pytest
from tests.advice.conftest import small_search

import asyncfed as af
from asyncfed.arena.arena import plan_arena, run_arena
from asyncfed.errors import ConfigError
from asyncfed.runs.process_pool import SameProcess
from asyncfed.runs.trained_elsewhere import TrainedElsewhere


class Elsewhere(TrainedElsewhere):
    """Trains here, and counts the jobs."""

    jobs = 0

    def local_train_many(self, jobs, threads=1):
        assert len(jobs.origins) == len(jobs.clients)
        assert all((start == origin).all() for start, origin in zip(jobs.starts, jobs.origins, strict=True))
        self.jobs += len(jobs.clients)
        return self._problem.local_train_many(jobs, threads)

    def local_path_moments(self, jobs, threads=1):
        return self._problem.local_path_moments(jobs, threads)


class Machines:
    """Other machines in name only."""

    def __init__(self):
        self.described, self.trained, self.pools = [], [], 0

    @contextmanager
    def train_for(self, experiment, problem, described):
        self.described.append(described)
        self.trained.append(Elsewhere(problem))
        yield self.trained[-1]

    @contextmanager
    def open_pool(self, begin=None, arguments=(), advice=""):
        self.pools += 1
        if begin is not None:
            begin(*arguments)
        yield SameProcess()


def test_a_run_is_trained_there_and_its_file_does_not_say_so(small, tmp_path):
    machines, here, there = Machines(), tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    run = af.run(small(), out=there, cluster=machines)
    alone = af.run(small(), out=here)
    assert (run.sha256, run.header) == (alone.sha256, alone.header)
    assert af.run(small(), problem=small().problem(), cluster=machines).sha256 == alone.sha256
    assert machines.described == [True, False]
    assert [trained.jobs for trained in machines.trained] == [6, 6]


def test_a_stopped_run_is_resumed_there(small, tmp_path):
    from asyncfed.runs.header import new_header
    from asyncfed.store.journal import Journal

    file, machines = tmp_path / "run.sqlite", Machines()
    Journal.create(file, new_header(small(), small().problem())).close()
    assert af.resume(file, cluster=machines).sha256 == af.run(small()).sha256
    assert machines.described == [True]


def test_studies_use_pools_of_other_machines(small, tmp_path):
    machines = Machines()
    both = {"afl": af.strategies.AFL(concurrency=2), "fedavg": af.strategies.FedAvg(cohort_size=2)}
    here, there = (af.compare(small(), both, [0, 1], workers=1, cluster=cluster) for cluster in (None, machines))
    assert [there.runs[name][seed].sha256 for name in both for seed in (0, 1)] == [
        here.runs[name][seed].sha256 for name in both for seed in (0, 1)
    ]
    plan = plan_arena(["quadratic"], ["equal"], ["iid"], ["fedasync"], seeds=1, trials=1)
    assert run_arena(plan, tmp_path / "a", 1) == run_arena(plan, tmp_path / "b", 1, cluster=machines)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["entries.jsonl"]
    assert machines.pools == 2


@pytest.mark.slow
def test_advice_of_other_machines(tmp_path):
    machines = Machines()
    found = small_search(tmp_path / "there", cluster=machines, described=True)
    assert found.to_toml() == small_search(tmp_path / "here").to_toml()
    assert machines.pools == 1


def test_what_is_strategies_own_cannot_go_there(small):
    class Local(af.strategies.AFL, tag="local_to_a_test"):
        """Not at the top of a module."""

    with pytest.raises(ConfigError, match="Define the strategy at the top of a module"):
        af.compare(small(), {"local": Local(concurrency=2)}, [0], cluster=Machines())
