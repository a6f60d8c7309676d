"""A live run for tests of the pages, as a program: `python troubled_run.py RUN FLAG`.

It goes on until it is told to stop. A client whose process ends has left; client 2 sends nonsense once FLAG exists.
"""

import sys
from pathlib import Path

import numpy as np

import asyncfed as af
from asyncfed.live.checks import Limits
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.runs.live import run_live

NUM_CLIENTS, CULPRIT = 5, 2


class SpoiledShard:
    """A shard that trains until the flag is set, and then sends what is no number."""

    def __init__(self, shard, flag):
        self._shard, self._flag = shard, flag

    @property
    def num_examples(self):
        return self._shard.num_examples

    def train(self, params, work, key, **more):
        trained = self._shard.train(params, work, key, **more)
        return np.full_like(params, np.nan) if self._flag.exists() else trained


class SpoiledProblem:
    """A problem one client of which has a shard that can be spoiled."""

    def __init__(self, problem, flag):
        self._problem, self._flag = problem, flag

    def __getattr__(self, name):
        return getattr(self._problem, name)

    def shard(self, client):
        shard = self._problem.shard(client)
        return SpoiledShard(shard, self._flag) if client == CULPRIT else shard


def main(path, flag):
    experiment = af.presets.regression(strategy="fedasync", num_clients=NUM_CLIENTS, rounds=10**6)
    strategy = af.replace(experiment.strategy, concurrency=NUM_CLIENTS)
    experiment = af.replace(experiment, name="five wards", strategy=strategy)
    engine = LocalEngine(task_seconds=0.1, restarts=0)
    problem = SpoiledProblem(experiment.problem(), flag)
    run_live(experiment, engine=engine, problem=problem, out=path, limits=Limits(faults=3))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.dashboard.troubled_run import main as importable_main  # processes of clients import the shard's class

    importable_main(Path(sys.argv[1]), Path(sys.argv[2]))
