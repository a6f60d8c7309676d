"""What a problem offers to engines, what its data offer to it, and how a problem is described in an experiment."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work

Array: TypeAlias = NDArray[Any]
Initialisation: TypeAlias = Literal["zeros", "torch"]


class PackedData(Protocol):
    """All clients' rows, one client after another: client c owns rows `offsets[c]` to `offsets[c + 1]`."""

    @property
    def x(self) -> Array:
        """Inputs, one entry per row."""
        ...

    @property
    def y(self) -> Array:
        """Targets, one entry per row."""
        ...

    @property
    def offsets(self) -> Array:
        """C + 1 whole numbers, from 0 to the number of rows."""
        ...

    def sha256(self) -> str:
        """The fingerprint of everything held."""
        ...


class NamedData(PackedData, Protocol):
    """Packed rows whose owners may have names: one each, or none at all."""

    @property
    def names(self) -> tuple[str, ...]:
        """One name per client, or none."""
        ...


class Jobs(NamedTuple):
    """k local trainings that do not depend on each other: job i trains client `clients[i]` from `starts[i]`.

    Args:
        starts: the params that each training begins with, shape (k, p).
        clients: the number of each job's client, 0 … C−1; a client may occur more than once.
        works: how each job is trained.
        keys: what each job's draws are made from, 0 … 2⁶⁴−1.
        overwrite: whether `starts` may be used up, because the caller has no further use for it.
        corrections: vectors (k, p) that are added to the gradient of every step; None for none. For jobs whose work has
            momentum there may be none.
        steps_done: an array (k,) of int64 that is filled with how many mini-batch steps each job made; None if nobody
            wants to know.
        origins: the arrays that `starts` are copies of, the same one for trainings that begin with the same model and
            never changed, so that a model need not be sent to another machine twice; None if nobody knows.
    """

    starts: Array
    clients: Sequence[int]
    works: Sequence[Work]
    keys: Sequence[int]
    overwrite: bool = False
    corrections: Array | None = None
    steps_done: Array | None = None
    origins: Sequence[Array] | None = None

    def part(self, first: int, last: int) -> Jobs:
        """Jobs `first` up to `last`."""
        rows = slice(first, last)
        return Jobs(
            self.starts[rows],
            self.clients[rows],
            self.works[rows],
            self.keys[rows],
            self.overwrite,
            None if self.corrections is None else self.corrections[rows],
            None if self.steps_done is None else self.steps_done[rows],
            None if self.origins is None else self.origins[rows],
        )


def one_job(
    params: Array, work: Work, key: int, correction: Array | None = None, steps_done: Array | None = None
) -> Jobs:
    """A single training of client 0: what a shard does."""
    corrections = None if correction is None else np.asarray(correction)[None]
    return Jobs(np.asarray(params)[None], [0], [work], [key], False, corrections, steps_done)


class AheadTraining(Protocol):
    """Trainings that other threads do while the caller does something else. Only the caller's thread may use it."""

    def begin(self, ticket: int, start: Array, client: int, work: Work, key: int) -> bool:
        """Have a ticket trained, to the bits of `local_train`; False if it should rather be trained with others."""
        ...

    def result(self, ticket: int) -> Array:
        """The params that a ticket arrives at. If nobody has begun with it, the caller's thread trains it."""
        ...

    def keep_only(self, tickets: Container[int]) -> None:
        """Nobody will ask for any others."""
        ...


@runtime_checkable
class TrainsAhead(Protocol):
    """A problem whose trainings can be done while the caller does something else."""

    def train_ahead(self, threads: int) -> AheadTraining | None:
        """Training on so many threads, the caller's among them; None if that would not be faster."""
        ...


class Problem(Protocol):
    """A model, its loss and each client's data. The params are one flat array of `num_params` numbers.

    The objective is the mean over clients of each client's mean loss, F(p) = (1/C) Σ_c (1/n_c) Σ_i f_{c,i}(p), plus any
    penalty: a small client counts as much as a large one.
    """

    @property
    def num_clients(self) -> int:
        """C, the number of clients; they are numbered 0 … C−1."""
        ...

    @property
    def num_params(self) -> int:
        """How many numbers the params are."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the params are trained in: float32 or float64."""
        ...

    @property
    def num_examples(self) -> NDArray[np.int64]:
        """Rows of each client, shape (C,)."""
        ...

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """The first params: the server's, or with `client` that client's own draw."""
        ...

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The client's params after its local work. All randomness comes from `key`; `params` is left as it was."""
        ...

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """The params (k, p) that k jobs end with, to the last bit those of `local_train` one by one."""
        ...

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """How far each training of `local_train_many` wanders from its start: (steps (k,), sums (k, p), squares (k,)).

        With y_0 the start and y_i the params after i mini-batch steps, of I in all: I, Σ (y_i − y_0) and Σ |y_i − y_0|²
        over i = 0 … I−1, the points from which a step is made. All float64.
        """
        ...

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """Named measurements; always `objective` and `pooled_loss` (the mean over all rows), both with any penalty."""
        ...

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """Each client's mean loss with any penalty, shape (C,). Their mean is the objective."""
        ...

    def client_loss(self, params: Array, client: int) -> float:
        """One client's mean loss with any penalty."""
        ...

    def gradient(self, params: Array, client: int) -> Array:
        """The gradient of `client_loss` over all the client's rows."""
        ...

    def optimum(self) -> Array | None:
        """The params that minimise the objective, in double precision, or None where there is no such single point."""
        ...

    def fingerprint(self) -> str:
        """SHA-256, in hex, of the data and of everything that shapes the loss."""
        ...


@runtime_checkable
class RebuildsOnRows(Protocol):
    """A problem that gives its rows, and can be built anew on others: the same model and loss for other clients."""

    @property
    def clients(self) -> NamedData:
        """The rows that are trained on."""
        ...

    @property
    def held_out(self) -> Mapping[str, PackedData]:
        """Rows of the clients that are measured on only, by the name of the part."""
        ...

    def on_rows(self, clients: NamedData, held_out: Mapping[str, PackedData] | None = None) -> Problem:
        """The same problem for these rows; rows to measure on that belong to no client stay."""
        ...


def gives_rows(problem: Problem) -> RebuildsOnRows | None:
    """The same problem, if it gives its rows and can be built on others; else None."""
    if isinstance(problem, RebuildsOnRows) and getattr(problem, "clients", None) is not None:
        return problem
    return None


@runtime_checkable
class MeasuresAtRandom(Protocol):
    """A problem with measurements that draw random numbers."""

    def random_measurements(self, params: Array, key: int) -> dict[str, float]:
        """What takes the place of `evaluate`'s measurements of the same names; all randomness comes from `key`."""
        ...


@runtime_checkable
class ProblemDescription(Protocol):
    """A problem as an experiment describes it, in `model`: a `Config` that builds the problem from the clients' rows.

    `LinearModel` is what a table without a `kind` stands for. One of your own has a kind and is registered:

        @register("problem")
        class Robust(Config, tag_field="kind", tag="robust"):
            scale: float = 1.0
            labels = False

            def build(self, clients, held_out=None):
                return RobustProblem(clients, self.scale, held_out)
    """

    @property
    def labels(self) -> bool:
        """Whether the targets have to be labels, −1 and +1."""
        ...

    def build(self, clients: NamedData, held_out: Mapping[Any, PackedData] | None = None) -> Problem:
        """The problem for these rows; `held_out` are rows to measure on, by the name of the part."""
        ...


class CompiledTraining(NamedTuple):
    """What `kernels.sgd_loops.train_client` needs to train a client: rows one client after another, and the model.

    Args:
        x: features, (n, d).
        y: targets, (n,).
        offsets: client c owns rows `offsets[c]` up to `offsets[c + 1]`.
        model: loss, L2 weight, whether it holds for the bias, whether there is a bias, width of the hinge.
    """

    x: Array
    y: Array
    offsets: Array
    model: tuple[int, float, bool, bool, float]

    def frozen(self) -> CompiledTraining:
        """The same arrays, which cannot be written to: compiled code is made for one or the other."""
        x, y, offsets = (array.view() for array in (self.x, self.y, self.offsets))
        x.flags.writeable = y.flags.writeable = offsets.flags.writeable = False
        return CompiledTraining(x, y, offsets, self.model)


class TrainsInLoop(Protocol):
    """A problem that compiled code can train client by client, without a call of `local_train_many`."""

    def compiled_training(self) -> CompiledTraining | None:
        """The rows and the model; the results are those of `local_train_many`. None if it must be called."""
        ...


class ClientScores(NamedTuple):
    """A model on each client's rows of one part: rows (C,), mean loss without penalty (C,), share of right answers.

    NaN for clients without a row; `accuracy` is None where targets are no labels.
    """

    rows: NDArray[np.int64]
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64] | None


@runtime_checkable
class ScoresClients(Protocol):
    """A problem that can measure a model on each client's rows, on those it was trained on and on others."""

    @property
    def parts(self) -> tuple[str, ...]:
        """`training`, and what else there is of `validation` and `test`."""
        ...

    @property
    def client_names(self) -> tuple[str, ...]:
        """What the clients are called; empty if they have only numbers."""
        ...

    def client_scores(self, params: Array, part: str, threads: int = 1) -> ClientScores:
        """Of one model (p,) that all clients use, or of a model for each client (C, p)."""
        ...

    def client_optimum(self, client: int) -> Array | None:
        """The params that minimise one client's own loss, penalty included; None where there is no such point."""
        ...


class ScoringProblem(Problem, ScoresClients, Protocol):
    """A problem that can also measure a model on each client's rows."""


def as_scoring_problem(problem: Problem) -> ScoringProblem:
    """The same problem, if it can measure a model on each client's rows; otherwise a `ConfigError`."""
    if not isinstance(problem, ScoresClients):
        raise ConfigError(
            f"{type(problem).__name__} does not measure a model on single clients. Give it `parts`, `client_names`, "
            "`client_scores` and `client_optimum`, see asyncfed.problems.protocol.ScoresClients."
        )
    return cast(ScoringProblem, problem)


class ClientShard(Protocol):
    """One client's part of a problem: its own data and no other's. It can be pickled, to be sent to that client."""

    @property
    def num_examples(self) -> int:
        """The client's rows."""
        ...

    def train(
        self,
        params: Array,
        work: Work,
        key: int,
        correction: Array | None = None,
        steps_done: Array | None = None,
    ) -> Array:
        """What `local_train_many` of the whole problem gives for this client, to the last bit.

        `correction` (p,) and `steps_done` (1,) are as in `Jobs`; a caller that needs neither gives neither.
        """
        ...


@runtime_checkable
class MeasuresLoss(Protocol):
    """A shard that can measure its client's loss, for work that asks for it."""

    def loss(self, params: Array) -> float:
        """What `client_loss` of the whole problem gives for this client."""
        ...


@runtime_checkable
class MeasuresRowLosses(Protocol):
    """A shard that can measure the losses of its client's rows, for work that asks for `start_rms`."""

    def row_losses(self, params: Array) -> Array:
        """What `client_row_losses` of the whole problem gives for this client, shape (n,)."""
        ...


@runtime_checkable
class HoldsBack(Protocol):
    """A shard that makes some of its tickets last longer than they take: a liar's may."""

    def delay_factor(self, key: int) -> float:
        """How many times as long as it takes the ticket that is trained with this key lasts, 1 or more."""
        ...


def held_back(shard: ClientShard, key: int) -> float:
    """How many times as long as it takes the ticket that is trained with this key lasts; 1 for most shards."""
    return shard.delay_factor(key) if isinstance(shard, HoldsBack) else 1.0


@runtime_checkable
class ShardedProblem(Problem, Protocol):
    """A problem that can be taken apart: what a live run needs, where every client has only its own data."""

    def shard(self, client: int) -> ClientShard:
        """This client's part, with its own rows only."""
        ...


def as_sharded_problem(problem: Problem) -> ShardedProblem:
    """The problem, if it can be taken apart; a `ConfigError` says what it lacks."""
    if not isinstance(problem, ShardedProblem):
        raise ConfigError(
            f"{type(problem).__name__} has no `shard(client)`, so no client can be given its own data alone. "
            "Add it (see asyncfed.problems.ShardedProblem), or simulate the run."
        )
    return problem
