"""The virtual-time engine: a heap of arrivals, and training done in batches at the last moment.

What a dispatched client computes depends only on the model it was handed, so nothing is trained until the first of the
pending trainings is needed; then all of them are, in one call that uses every thread. The results are those of
training one by one, to the last bit.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Literal

import numpy as np

from asyncfed.combine import Vectors
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Config
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Dispatch, Report, Strategy
from asyncfed.delays import DelayModel, check_timing
from asyncfed.problems.protocol import Initialisation, Problem
from asyncfed.sim.drift import DriftMeter
from asyncfed.sim.evaluation import Evaluation, Evaluator
from asyncfed.sim.execution import Execution, own_start_of
from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger


class Churn(Config):
    """A client joins or leaves at a moment of virtual time. Who joins later is absent from the start."""

    time: float
    client: int
    event: Literal["join", "leave"]

    def __post_init__(self) -> None:
        if not 0 <= self.time < float("inf"):
            raise ConfigError(f"churn.time is {self.time}; it must be zero or a positive number of seconds.")


class Plan(Config):
    """All that a simulation needs besides its problem and its delays."""

    strategy: Any
    seed: int = 0
    budget: Budget = Budget()
    init: Initialisation = "zeros"
    churn: tuple[Churn, ...] = ()
    evaluation: Evaluation = Evaluation()
    divergence_norm: float = 1e9
    threads: int = 1


class Simulation:
    """`advance` until it answers True; commit the journal with `checkpoint()` whenever convenient in between."""

    def __init__(
        self,
        problem: Problem,
        delays: DelayModel,
        plan: Plan,
        journal: Journal,
        checkpoint: tuple[dict[str, Any], dict[str, np.ndarray]] | None = None,
    ) -> None:
        self._problem = problem
        self._delays = delays
        self._plan = plan
        self._examples: list[int] = problem.num_examples.tolist()
        self._train_key = purpose_key(plan.seed, "train")
        self._heap: list[tuple[float, int, float, float, bool]] = []
        self._free_at: dict[int, float] = {}
        self._untrained: dict[int, Dispatch] = {}
        self._churn = sorted(plan.churn, key=lambda c: (c.time, c.client))
        self.finished = False
        self._execution = self._executing(journal, checkpoint)
        self._execution.on_dispatch = self._schedule
        if plan.evaluation.drift:
            meter = DriftMeter(problem, self._execution, self._train_key, plan.threads)
            self._execution.on_merge = meter.measure
        if checkpoint is None:
            for number, churn in enumerate(self._churn):
                heappush(self._heap, (churn.time, number - len(self._churn), 0.0, 0.0, False))
            self._execution.start()
        else:
            self._restore(checkpoint[0])

    def _executing(
        self, journal: Journal, checkpoint: tuple[dict[str, Any], dict[str, np.ndarray]] | None
    ) -> Execution:
        problem, plan = self._problem, self._plan
        absent = {c.client for c in reversed(self._churn) if c.event == "join"}
        server = Server(plan.strategy, self._examples, plan.seed, plan.budget, absent)
        if checkpoint is None:
            vectors = Vectors(problem.init(plan.seed, how=plan.init))
            ledger = Ledger(problem.num_clients, vectors.params.nbytes)
        else:
            vectors = Vectors.load(checkpoint[1])
            ledger = Ledger.restored(checkpoint[0]["ledger"])
        evaluator = Evaluator(problem, plan.evaluation, plan.threads)
        own_start = own_start_of(problem, vectors, plan.seed, plan.init)
        return Execution(server, vectors, ledger, journal, evaluator, own_start, plan.divergence_norm)

    # ---- what an onlooker may see ----------------------------------------------------------------------------

    @property
    def params(self) -> np.ndarray:
        return self._execution.vectors.params

    @property
    def rounds(self) -> int:
        return self._execution.server.round

    @property
    def updates(self) -> int:
        return self._execution.server.updates

    @property
    def elapsed(self) -> float:
        return self._execution.now

    @property
    def last_metrics(self) -> dict[str, float]:
        return self._execution.evaluator.last

    @property
    def verdict(self) -> tuple[str, str]:
        """A word and a sentence: finished, diverged or starved, and why."""
        reason = self._execution.server.stopped or "still running"
        if self._execution.diverged:
            return "diverged", reason
        return ("starved" if reason.startswith("starved") else "finished"), reason

    # ---- virtual time ----------------------------------------------------------------------------------------

    def advance(self, arrivals: int) -> bool:
        """Let up to so many things happen. True when the run is over."""
        execution, heap = self._execution, self._heap
        server, trained, examples = execution.server, execution.vectors.trained, self._examples
        for _ in range(arrivals):
            if server.stopped is not None or not heap:
                break
            time, ticket, duration, energy, lost = heappop(heap)
            if ticket < 0:
                execution.now = time
                self._apply_churn(self._churn[ticket + len(self._churn)])
                continue
            dispatch = server.in_flight.get(ticket)
            if dispatch is None:
                continue  # its client left meanwhile
            execution.now = time
            if lost:
                execution.lose(ticket, duration, energy)
                continue
            if ticket not in trained:
                self._train_pending()
            client = dispatch.client
            if dispatch.work.start == "own":
                execution.vectors.own[client] = trained[ticket]
            execution.receive(Report(ticket, client, time, duration, examples[client]), energy)
        if server.stopped is None and not heap:
            execution.halt("starved: nobody is at work and nobody will join, so nothing more can happen")
        if server.stopped is not None and not self.finished:
            self.finished = True
            execution.evaluate()
        return self.finished

    def _schedule(self, dispatch: Dispatch) -> None:
        """Put a ticket's arrival on the heap. A client computes one ticket at a time, first come first served."""
        ticket, client, delays = dispatch.ticket, dispatch.client, self._delays
        timing = delays.timing(client, ticket, dispatch.work, self._examples[client])
        check_timing(timing, client, ticket)
        now = self._execution.now
        energy = delays.watts(client) * timing.compute
        if timing.lost:
            after = delays.lost_after(client, ticket, timing)
            heappush(self._heap, (now + after, ticket, after, energy, True))
            return
        begin = max(now + timing.download, self._free_at.get(client, 0.0))
        done = delays.finish_compute(client, begin, timing.compute)
        self._free_at[client] = done
        self._untrained[ticket] = dispatch
        duration = timing.download + (done - begin) + timing.upload
        heappush(self._heap, (done + timing.upload, ticket, duration, energy, False))

    def _train_pending(self) -> None:
        handed_out, key = self._execution.vectors.handed_out, self._train_key
        pending = [d for d in self._untrained.values() if d.ticket in handed_out]
        models = self._problem.local_train_many(
            np.array([handed_out[d.ticket] for d in pending]),
            [d.client for d in pending],
            [d.work for d in pending],
            [draw_key(key, d.client, d.ticket) for d in pending],
            threads=self._plan.threads,
        )
        trained = self._execution.vectors.trained
        for dispatch, model in zip(pending, models, strict=True):
            trained[dispatch.ticket] = model
        self._untrained.clear()

    def _apply_churn(self, churn: Churn) -> None:
        here = churn.client in self._execution.server.clients
        if churn.event == "join" and not here:
            self._execution.join(churn.client, self._examples[churn.client])
        elif churn.event == "leave" and here:
            self._execution.leave(churn.client)

    # ---- checkpoints -----------------------------------------------------------------------------------------

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        now = self._execution.now
        state = {
            **self._execution.snapshot(),
            "heap": self._heap,
            "free_at": [[c, t] for c, t in self._free_at.items() if t > now],
            "finished": self.finished,
        }
        return state, self._execution.vectors.dump()

    def _restore(self, state: dict[str, Any]) -> None:
        self._execution.restore(state)
        self._heap = [(t, k, d, e, lost) for t, k, d, e, lost in state["heap"]]
        heapify(self._heap)
        self._free_at = {client: free for client, free in state["free_at"]}
        self.finished = state["finished"]
        trained, in_flight = self._execution.vectors.trained, self._execution.server.in_flight
        due = sorted(k for _, k, _, _, lost in self._heap if not lost and k not in trained)
        self._untrained = {ticket: in_flight[ticket] for ticket in due if ticket in in_flight}
