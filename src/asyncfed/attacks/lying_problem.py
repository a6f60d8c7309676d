"""LyingProblem: a problem some of whose clients lie. Everything else about it is as the problem is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.lying_rows import honest_problem, poisoned_problem, trigger_problem
from asyncfed.core.record import to_json
from asyncfed.core.types import Work
from asyncfed.problems.param_shapes import Shapes, shapes_of
from asyncfed.problems.protocol import Array, Initialisation, Jobs, Problem


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
        self.place = {client: place for place, client in enumerate(coalition.members)}
        if self.attack.poisons_rows:
            assert self.poisoned is not None  # refused now, not in the middle of a run

    @property
    def param_shapes(self) -> Shapes:
        """Those of the problem."""
        return shapes_of(self.inner)

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
            [self.place[jobs.clients[place]] for place in lying],
            [jobs.works[place] for place in lying],
            [jobs.keys[place] for place in lying],
            True,
            None if jobs.corrections is None else jobs.corrections[lying],
            steps,
        )
        return _Poisoned(self.poisoned.local_train_many(same, threads), steps)

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """Those of honest training: a lie has no path."""
        return self.inner.local_path_moments(jobs, threads)

    @cached_property
    def poisoned(self) -> Problem:
        """The liars alone, on the rows that they lie with; its client i is the i-th liar."""
        return poisoned_problem(self.inner, self.attack, self.coalition.members, self.coalition.secret)

    # ---- measuring: honest clients only ----------------------------------------------------------------------

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """The problem's measurements on the honest clients' rows, and how well the attack succeeds if it says so.

        Of a problem that cannot be built anew on some of its rows: `objective` and `pooled_loss` only.
        """
        if self.honest_problem is not None:
            measured = dict(self.honest_problem.evaluate(params, threads))
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
        return None if self.honest_problem is None else self.honest_problem.optimum()

    @cached_property
    def honest_problem(self) -> Problem | None:
        """The honest clients alone; None if the problem cannot be built anew on some of its rows."""
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
