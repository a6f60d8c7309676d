"""LyingProblem: a problem some of whose clients lie. Everything else about it is as the problem is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from hashlib import sha256
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.liars import Liars
from asyncfed.attacks.lying_rows import honest_problem, poisoned_problem, targets_of, trigger_problem
from asyncfed.attacks.lying_shard import LyingShard
from asyncfed.attacks.protocol import Attack
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import to_json
from asyncfed.core.types import Work
from asyncfed.problems.protocol import (
    Array,
    ClientScores,
    ClientShard,
    Initialisation,
    Jobs,
    MeasuresAtRandom,
    Problem,
    ScoresClients,
    ShardedProblem,
    as_sharded_problem,
)
from asyncfed.problems.row_losses import MeasuresClientRows, MeasuresRows, RowLosses


def with_liars(problem: Problem, liars: Liars, seed: int, how: Initialisation = "zeros") -> Problem:
    """The problem with some clients that lie; itself, if it has these liars already or nobody lies.

    Args:
        problem: what is learnt. What it measures besides (on single clients, on rows) and whether it has shards, what
            is given back has too.
        liars: who lies, and how.
        seed: the run's, which decides who lies.
        how: how the run's first model is made.

    Raises:
        ConfigError: there cannot be such liars, or the problem has others already.
    """
    before = liars_of(problem)
    if before is not None:
        if (before.description, before.seed) != (liars, seed):
            raise ConfigError(
                "The problem given has liars of its own, and the experiment others. Give the honest problem, or leave "
                "the experiment's attack out."
            )
        return problem
    members = liars.choose(problem.num_clients, seed)
    if not members:
        return problem
    liars.attack.check(targets_of(problem))
    coalition = Coalition(liars, seed, problem.num_clients, problem.init(seed, how=how), members)
    return _rebuild(problem, coalition)


def liars_of(problem: Problem) -> Coalition | None:
    """Who lies in this problem; None if nobody does."""
    coalition: Coalition | None = getattr(problem, "coalition", None)
    return coalition


def without_liars(problem: Problem) -> Problem:
    """The problem with honest clients only in place of liars."""
    while liars_of(problem) is not None:
        problem = cast(LyingProblem, problem).inner  # of workers, the problem with liars
    return problem


def lying_node(problem: ShardedProblem, client: int, attack: Attack, seed: int, how: Initialisation) -> LyingShard:
    """The part of one client that lies by itself, with its own data and no other's: a node of a real federation.

    Args:
        problem: what is learnt, with this client's rows.
        client: its number in the problem.
        attack: how it lies.
        seed: the run's.
        how: how the run's first model is made.

    Raises:
        ConfigError: the attack needs other liars, or other clients' data, or cannot be used on this problem.
    """
    if attack.least_liars > 1 or attack.knows == "all":
        raise ConfigError(
            f"attack: {type(attack).__name__} needs the data of other clients, and a node has its own alone. Take an "
            "attack that can do with those."
        )
    attack.check(targets_of(problem))
    described = Liars(attack=attack, clients=(client,))
    coalition = Coalition(described, seed, problem.num_clients, problem.init(seed, how=how), (client,))
    poisoned = None
    if attack.poisons_rows:
        made = poisoned_problem(problem, attack, (client,), coalition.secret)
        poisoned = as_sharded_problem(made).shard(0)
    return LyingShard(client, {client: problem.shard(client)}, coalition, poisoned)


def _rebuild(problem: Problem, coalition: Coalition) -> LyingProblem:
    made = _class_of(tuple(part for protocol, part in _PARTS.items() if isinstance(problem, protocol)))
    return made(problem, coalition)


class _Poisoned(NamedTuple):
    """Models trained on poisoned rows, and the steps made."""

    models: Array
    steps: Array


class LyingProblem:
    """A `Problem` some of whose clients lie, made by `with_liars`.

    Training is that of the problem, and then liars replace what they send: a function of start, client, work and key
    alone. What is measured for a run (`evaluate`, `optimum`, `row_losses`) is of the honest clients' rows only;
    measurements of single clients (`client_losses`, `client_scores`, …) are on each one's true rows.

    Args:
        inner: the problem with honest clients only.
        coalition: who lies, and how.
    """

    def __init__(self, inner: Problem, coalition: Coalition) -> None:
        self.inner = inner
        self.coalition = coalition
        self.attack = coalition.description.attack
        self.honest = tuple(c for c in range(inner.num_clients) if c not in coalition.members)
        self._place = {client: place for place, client in enumerate(coalition.members)}
        if self.attack.poisons_rows:
            assert self._poisoned is not None  # refused now, not in the middle of a run

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.inner, self.coalition)

    # ---- training --------------------------------------------------------------------------------------------

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """What the client sends: the params after its local work, or a lie."""
        trained: Array = self.local_train_many(Jobs(np.asarray(params)[None], [client], [work], [key]))[0]
        return trained

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """What k jobs end with; jobs of liars with a lie, one by one and in order."""
        lying = [
            place
            for place, (client, key) in enumerate(zip(jobs.clients, jobs.keys, strict=True))
            if self.coalition.lies(client, key)
        ]
        if not lying:
            return self.inner.local_train_many(jobs, threads)
        starts = np.array(jobs.starts[lying], dtype=self.dtype)  # training may use them up
        poisoned = self._train_poisoned(jobs, lying, starts, threads)
        sent = self.inner.local_train_many(jobs._replace(overwrite=False), threads)
        if poisoned is not None and jobs.steps_done is not None:
            jobs.steps_done[lying] = poisoned.steps
        known: dict[Any, Array] = {}

        def train(start: Array, clients: Sequence[int], work: Work, keys: Sequence[int]) -> Array:
            wanted = (start.tobytes(), tuple(clients), work, tuple(keys))
            if wanted not in known:
                same = Jobs(np.tile(start, (len(clients), 1)), clients, [work] * len(clients), keys, True)
                known[wanted] = self.inner.local_train_many(same, threads)
            return known[wanted]

        for row, place in enumerate(lying):
            trained = sent[place].copy() if poisoned is None else poisoned.models[row]
            client, work, key = jobs.clients[place], jobs.works[place], jobs.keys[place]
            sent[place] = self.coalition.answer(starts[row], trained, client, work, key, train)
        return sent

    def _train_poisoned(self, jobs: Jobs, lying: list[int], starts: Array, threads: int) -> _Poisoned | None:
        """What the liars arrive at on poisoned rows; None if they leave their rows as they are."""
        if not self.attack.poisons_rows:
            return None
        steps = np.zeros(len(lying), np.int64)
        same = Jobs(
            starts.copy(),
            [self._place[jobs.clients[place]] for place in lying],
            [jobs.works[place] for place in lying],
            [jobs.keys[place] for place in lying],
            True,
            None if jobs.corrections is None else jobs.corrections[lying],
            steps,
        )
        return _Poisoned(self._poisoned.local_train_many(same, threads), steps)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """Those of honest training: a lie has no path."""
        return self.inner.local_path_moments(jobs, threads)

    @cached_property
    def _poisoned(self) -> Problem:
        return poisoned_problem(self.inner, self.attack, self.coalition.members, self.coalition.secret)

    # ---- measuring: honest clients only ----------------------------------------------------------------------

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """The problem's measurements on the honest clients' rows, and how well the attack succeeds if it says so.

        Of a problem that cannot be built anew on some of its rows: `objective` and `pooled_loss` only.
        """
        if self._honest_problem is not None:
            measured = dict(self._honest_problem.evaluate(params, threads))
        else:
            chosen = list(self.honest)
            losses, rows = self.inner.client_losses(params, threads)[chosen], self.inner.num_examples[chosen]
            measured = {
                "objective": float(np.mean(losses)),
                "pooled_loss": float(np.sum(losses * rows)) / int(rows.sum()),
            }
        if self._triggered is not None:
            measured[self.attack.measures] = self._triggered.evaluate(params, threads)["pooled_accuracy"]
        return measured

    def optimum(self) -> Array | None:
        """The optimum of the honest clients' objective; None where it is not known."""
        return None if self._honest_problem is None else self._honest_problem.optimum()

    @cached_property
    def _honest_problem(self) -> Problem | None:
        return honest_problem(self.inner, self.honest)

    @cached_property
    def _triggered(self) -> Problem | None:
        return trigger_problem(self.inner, self.attack, self.honest)

    # ---- as the problem is -----------------------------------------------------------------------------------

    @property
    def num_clients(self) -> int:
        """The problem's, liars included."""
        return self.inner.num_clients

    @property
    def num_params(self) -> int:
        """The problem's."""
        return self.inner.num_params

    @property
    def dtype(self) -> np.dtype[Any]:
        """The problem's."""
        return self.inner.dtype

    @property
    def num_examples(self) -> NDArray[np.int64]:
        """The problem's."""
        return self.inner.num_examples

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """The problem's."""
        return self.inner.init(seed, client, how)

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss on its true rows, liars included; the objective is the mean over honest ones."""
        return self.inner.client_losses(params, threads)

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss on its true rows."""
        return self.inner.client_loss(params, client)

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss`."""
        return self.inner.gradient(params, client)

    def fingerprint(self) -> str:
        """SHA-256 of the problem's own fingerprint, of the attack and of who lies."""
        first = sha256(np.ascontiguousarray(self.coalition.first).tobytes()).hexdigest()
        text = f"{to_json(self.coalition.description)} {self.coalition.members} {self.coalition.seed} {first}"
        return sha256(f"lying {self.inner.fingerprint()} {text}".encode()).hexdigest()


# ---- what only some problems have ------------------------------------------------------------------------------


class _WithScores(LyingProblem):
    """Measures a model on each client's true rows."""

    inner: Any

    @property
    def parts(self) -> tuple[str, ...]:
        """The problem's."""
        return self.inner.parts  # type: ignore[no-any-return]

    @property
    def client_names(self) -> tuple[str, ...]:
        """The problem's."""
        return self.inner.client_names  # type: ignore[no-any-return]

    def client_scores(self, params: Array, part: str, threads: int = 1) -> ClientScores:
        """The problem's, of all clients."""
        return self.inner.client_scores(params, part, threads)  # type: ignore[no-any-return]

    def client_optimum(self, client: int) -> Array | None:
        """The problem's."""
        return self.inner.client_optimum(client)  # type: ignore[no-any-return]


class _WithRows(LyingProblem):
    """Measures a model on single rows: those of honest clients. Liars have none."""

    inner: Any

    @property
    def parts(self) -> tuple[str, ...]:
        """The problem's."""
        return self.inner.parts  # type: ignore[no-any-return]

    def row_losses(self, params: Array, part: str) -> RowLosses:
        """The problem's, without the liars' rows."""
        rows: RowLosses = self.inner.row_losses(params, part)
        sizes = np.diff(rows.offsets)
        honest = np.isin(np.arange(len(sizes)), self.honest)
        kept = np.repeat(honest, sizes)
        return RowLosses(rows.loss[kept], np.concatenate(([0], np.cumsum(np.where(honest, sizes, 0)))))


class _WithClientRows(LyingProblem):
    """Measures a model on the single rows that one client trains on."""

    inner: Any

    def client_row_losses(self, params: Array, client: int) -> Array:
        """The problem's."""
        return self.inner.client_row_losses(params, client)  # type: ignore[no-any-return]


class _WithDraws(LyingProblem):
    """Has measurements that draw random numbers."""

    inner: Any

    def random_measurements(self, params: Array, key: int) -> dict[str, float]:
        """Those of the honest clients' problem; none if that cannot be built."""
        measures = self._honest_problem
        return measures.random_measurements(params, key) if isinstance(measures, MeasuresAtRandom) else {}


class _WithShards(LyingProblem):
    """Can be taken apart, for live runs."""

    inner: Any

    def shard(self, client: int) -> ClientShard:
        """The client's own part; a liar's lies, and holds the parts of the liars whose data its attack uses."""
        own: ClientShard = self.inner.shard(client)
        if client not in self.coalition.members:
            return own
        if self.attack.knows == "all":
            raise ConfigError(
                f"attack: {type(self.attack).__name__} with the knowledge of all clients' data can be simulated only: "
                "in a live run no client has them. Set attack.attack.knowledge to coalition."
            )
        others = self.coalition.members if self.attack.knows == "coalition" else ()
        shards = {other: own if other == client else self.inner.shard(other) for other in {client, *others}}
        poisoned = as_sharded_problem(self._poisoned).shard(self._place[client]) if self.attack.poisons_rows else None
        return LyingShard(client, shards, self.coalition, poisoned)


_PARTS: dict[Any, type[LyingProblem]] = {
    ScoresClients: _WithScores,
    MeasuresRows: _WithRows,
    MeasuresClientRows: _WithClientRows,
    MeasuresAtRandom: _WithDraws,
    ShardedProblem: _WithShards,
}


@cache
def _class_of(parts: tuple[type[LyingProblem], ...]) -> type[LyingProblem]:
    """A `LyingProblem` that has these parts and no others, so that nobody asks it for what the problem cannot do."""
    return type("LyingProblem", (*parts, LyingProblem), {"__doc__": LyingProblem.__doc__})
