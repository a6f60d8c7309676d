"""What only some problems offer, for problems with liars: scores of clients and rows, draws, shards."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.lying_problem import LyingProblem
from asyncfed.attacks.lying_shard import LyingShard
from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import (
    Array,
    ClientScores,
    ClientShard,
    MeasuresAtRandom,
    Problem,
    ScoresClients,
    ShardedProblem,
    as_sharded_problem,
)
from asyncfed.problems.row_losses import MeasuresClientRows, MeasuresRows, RowLosses


def lying_problem_of(problem: Problem, coalition: Coalition) -> LyingProblem:
    """The problem with these liars, and with what else the problem offers."""
    made = _class_of(tuple(part for protocol, part in _PARTS.items() if isinstance(problem, protocol)))
    return made(problem, coalition)


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
        measures = self.honest_problem
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
        poisoned = as_sharded_problem(self.poisoned).shard(self.place[client]) if self.attack.poisons_rows else None
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
    members = {"__doc__": LyingProblem.__doc__, "__reduce__": _reduce}
    return type("LyingProblem", (*parts, LyingProblem), members)


def _reduce(self: LyingProblem) -> tuple[Any, ...]:
    """A copy for another process is made anew, for these classes have no name of their own."""
    return lying_problem_of, (self.inner, self.coalition)
