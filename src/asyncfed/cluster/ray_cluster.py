"""Cluster: machines that train the clients of a simulation, or do the runs of a study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from asyncfed.cluster.actor_pool import ActorPool
from asyncfed.cluster.connection import AUTO, Connection, Node
from asyncfed.cluster.sent_versions import SentVersions
from asyncfed.cluster.trainings import ClusterTrainings, hold_problem
from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.problem_source import problem_source
from asyncfed.strategies import Dispatching

ADVICE = "What was computed is kept in the run's file: `asyncfed resume` continues it, with or without a cluster."


class Cluster:
    """The nodes of a Ray cluster, for runs whose trainings, or studies whose runs, are to be done there.

        with af.Cluster("auto") as cluster:
            af.run(experiment, cluster=cluster)

    Results are the same as without it, to the last byte, whoever computes and whatever dies meanwhile. Needs the extra
    `ray`, on every node the same versions as here, and this machine to be a node. Anybody who reaches a Ray cluster's
    ports can run code there: use it in networks you trust. See docs/cluster.md.

    Args:
        address: `HOST:PORT` of the head node, or "auto" for the cluster that `RAY_ADDRESS` names or that runs here.
        workers: how many actors compute, at least 1 (default: one per CPU of the cluster). They change the speed and
            nothing else.
        notify: called with a sentence when something is lost or idle (default: it is printed to standard error).

    Raises:
        ConfigError: `workers` is below 1, Ray is not installed, nobody answers, or a node computes with other code.
    """

    def __init__(
        self, address: str = AUTO, workers: int | None = None, notify: Callable[[str], None] | None = None
    ) -> None:
        if workers is not None and workers < 1:
            raise ConfigError(f"workers is {workers}; a cluster needs at least 1.")
        self._workers = workers
        self._notify = _print_to_stderr if notify is None else notify
        self._pool: ActorPool | None = None
        self._connection = Connection(address)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave the cluster; no actor stays behind."""
        self._connection.close()

    @property
    def nodes(self) -> list[Node]:
        """The nodes that are alive."""
        return self._connection.nodes()

    @property
    def at_work(self) -> dict[str, int]:
        """How many actors compute at the moment, by the address of their node."""
        return {} if self._pool is None else self._pool.at_work

    def describe(self) -> str:
        """A line that says which nodes there are."""
        listed = ", ".join(f"{node.address} ({node.cpus:g} CPUs)" for node in self.nodes)
        return f"cluster {self._connection.address}: nodes {listed}"

    @contextmanager
    def train_for(self, experiment: Experiment, problem: Problem, described: bool) -> Iterator[Problem]:
        """The problem, trained by actors as long as the `with` statement lasts, and by this process afterwards.

        Args:
            experiment: what is run.
            problem: what is learnt.
            described: whether it is the one that the experiment describes: actors then make it themselves.
        """
        dumps = self._connection.ray.cloudpickle.dumps  # takes along what the script that was started defines
        source = problem_source(problem, experiment if described else None, dumps)
        at_once = self._trainings_at_once(experiment)
        with self._actors(hold_problem, (source,), ADVICE, at_once, depth=2) as pool:
            trained = ClusterTrainings(problem, pool, SentVersions(self._connection.ray), self._notify)
            try:
                yield trained
            finally:
                trained.close()

    @contextmanager
    def open_pool(
        self, begin: Callable[..., None] | None = None, arguments: tuple[Any, ...] = (), advice: str = ""
    ) -> Iterator[ActorPool]:
        """Actors that call functions.

        Args:
            begin: called in each actor before its first call, with `arguments`.
            arguments: what `begin` is called with.
            advice: the end of an error's message: what to do.
        """
        with self._actors(begin, arguments, advice) as pool:
            yield pool

    @contextmanager
    def _actors(
        self,
        begin: Callable[..., None] | None,
        arguments: tuple[Any, ...],
        advice: str,
        most: int | None = None,
        depth: int = 1,
    ) -> Iterator[ActorPool]:
        self._connection.check_nodes()
        before = self._pool
        with ActorPool(
            self._connection,
            self._workers,
            most=most,
            begin=begin,
            arguments=arguments,
            advice=advice,
            depth=depth,
            notify=self._notify,
        ) as pool:
            self._pool = pool
            try:
                yield pool
            finally:
                self._pool = before

    def _trainings_at_once(self, experiment: Experiment) -> int | None:
        """How many trainings there can be at once; says so if there are more actors than that."""
        strategy = experiment.strategy
        if not isinstance(strategy, Dispatching):
            return None
        tickets = strategy.dispatch.tickets
        wanted = sum(int(node.cpus) for node in self.nodes) if self._workers is None else self._workers
        if wanted > tickets:
            self._notify(
                f"at most {tickets} trainings run at once with this strategy, so {tickets} actors are started in place "
                f"of {wanted}; a larger concurrency or cohort would use more"
            )
        return tickets


def _print_to_stderr(sentence: str) -> None:
    print(f"cluster: {sentence}", file=sys.stderr)
