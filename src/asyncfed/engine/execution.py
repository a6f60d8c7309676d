"""Carrying out what the server decides: move the vectors, count in the ledger, write the journal.

It knows no clock: whoever drives it (the simulator's heap, a replayed journal) sets `now`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

import numpy as np

from asyncfed.core.record import to_json
from asyncfed.core.server import Server
from asyncfed.core.types import Combine, Dispatch, Drop, Merge, Report, Stop, Work, staleness_of
from asyncfed.engine.evaluation import Evaluator
from asyncfed.engine.stopping import StoppingMonitor
from asyncfed.problems.protocol import Problem
from asyncfed.rules import Vectors
from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger
from asyncfed.store.schema import DISPATCH, DROP, JOIN, LEAVE, LOST, MERGE, REFUSED, REPORT, STOP

MergeObserver: TypeAlias = "Callable[[Execution, Merge], None]"
"""Called with every merge just before it is carried out."""


class Execution:
    """One run in progress. `on_dispatch` is called with every ticket that goes out."""

    def __init__(
        self,
        server: Server,
        vectors: Vectors,
        ledger: Ledger,
        journal: Journal,
        evaluator: Evaluator,
        own_start: Callable[[int], np.ndarray],
        divergence_norm: float,
    ) -> None:
        self.server = server
        self.vectors = vectors
        self.ledger = ledger
        self.journal = journal
        self.evaluator = evaluator
        self.now = 0.0
        # Counted merge by merge, because the server counts all merges of a decision before the first is carried out.
        self.version = server.version
        self.round = server.round
        self.updates = server.updates
        self.evaluated_at: int | None = None
        self.diverged = False
        self.stopping: StoppingMonitor | None = None
        self._halted = False
        self.on_dispatch: Callable[[Dispatch], None] = lambda dispatch: None
        self.on_merge: Callable[[Merge], None] | None = None
        self._own_start = own_start
        self._divergence_norm = divergence_norm
        self._divergence_square = divergence_norm * divergence_norm  # infinite above 1e154, where ** is an error
        self.dispatches: dict[int, Dispatch] = {}
        self._work: Work | None = None
        self._work_detail = -1
        self._last_forms: list[tuple[str | None, Combine | None, int]] = [(None, None, -1), (None, None, -1)]

    # ---- inputs: each is given to the server and journalled, and its decisions are carried out -----------------

    def start(self) -> None:
        """Measure the first model and dispatch the first tickets."""
        self.evaluate()
        if self.stopping is not None:
            self.stopping.reason(self.evaluator.last, self.round)  # later models are to improve on the first
        self._carry_out(self.server.start())

    def receive(self, report: Report, energy: float) -> None:
        """A report has arrived; its trained model is in `vectors.trained`."""
        outputs = self.server.receive(report)
        ticket, client, duration = report.ticket, report.client, report.duration
        detail = None if report.metrics is None else self._intern(report.metrics)
        journal = self.journal
        seq = journal.next_seq
        journal.next_seq = seq + 1
        journal.events.append((seq, self.now, REPORT, ticket, client, self.version, duration, energy, detail))
        self.ledger.count_report(duration, energy)
        self._carry_out(outputs)
        if self.stopping is not None:
            self._halt_early(self.stopping.spent(self.ledger.energy))

    def lose(self, ticket: int, after: float, energy: float, reason: str | None = None) -> None:
        """A ticket will never be reported: lost `after` seconds, having cost `energy` joules."""
        client = self.vectors.client_of[ticket]
        outputs = self.server.lose(ticket)
        self._write(LOST, ticket, client, after, energy, reason)
        self._forget_lost(ticket, energy)
        self._carry_out(outputs)
        if self.stopping is not None:
            self._halt_early(self.stopping.spent(self.ledger.energy))

    def join(self, client: int, num_examples: int) -> None:
        """A client with so many rows is there from now on."""
        outputs = self.server.join(client, num_examples)
        self._write(JOIN, None, client, float(num_examples), None, None)
        self._carry_out(outputs)

    def refuse(self, ticket: int | None, client: int, is_fault: bool, reason: str) -> None:
        """A result was refused: it is written down, and nothing follows from it."""
        self._write(REFUSED, ticket, client, float(is_fault), None, reason)

    def leave(self, client: int, reason: str | None = None) -> None:
        """A client is gone, and with it the tickets it had."""
        gone = [t for t, d in self.server.outstanding.items() if d.client == client]
        outputs = self.server.leave(client)
        self._write(LEAVE, None, client, None, None, reason)
        for ticket in gone:
            self._forget_lost(ticket, 0.0)
        self._carry_out(outputs)

    def halt(self, reason: str) -> None:
        """End the run."""
        self._carry_out(self.server.halt(reason))
        self._halted = True

    def _halt_early(self, reason: str | None) -> None:
        """Stop for this reason, if there is one and the run has not stopped for another."""
        if reason is not None and self.server.stopped is None:
            self.halt(reason)

    @property
    def verdict(self) -> tuple[str, str]:
        """A word and a sentence: finished, diverged or starved, and why."""
        reason = self.server.stopped or "still running"
        if self.diverged:
            return "diverged", reason
        return ("starved" if reason.startswith("starved") else "finished"), reason

    def conclude(self) -> None:
        """The last measurement, unless this very model was measured when it was merged: that moment stays."""
        if self.evaluated_at != self.updates:
            self.evaluate()

    def evaluate(self) -> None:
        """Measure the model as it is now."""
        row = self.evaluator.row(self.vectors.params, self.version, self.round, self.updates, self.now)
        self.journal.evaluations.append(row)
        self.evaluated_at = self.updates

    # ---- outputs ---------------------------------------------------------------------------------------------

    def _carry_out(self, outputs: Sequence[Any]) -> None:
        for output in outputs:
            kind = type(output)
            if kind is Dispatch:
                self._dispatch(output)
            elif kind is Merge:
                self._merge(output)
                if self._halted:
                    return
            elif kind is Drop:
                self._write(DROP, output.ticket, self.vectors.client_of[output.ticket], None, None, output.reason)
                self.ledger.dropped += 1
                self._forget(output.ticket)
            elif kind is Stop:
                self._write(STOP, None, None, None, None, output.reason)

    def _dispatch(self, dispatch: Dispatch) -> None:
        ticket, client, work = dispatch.ticket, dispatch.client, dispatch.work
        if work is not self._work:
            self._work, self._work_detail = work, self._intern(work)
        self.dispatches[ticket] = dispatch
        if work.start == "server":
            self.vectors.dispatch(dispatch)
            self.ledger.bytes_down += self.ledger.model_bytes
        else:
            self.vectors.dispatch(dispatch, self._own_start(client))
        journal = self.journal
        seq = journal.next_seq
        journal.next_seq = seq + 1
        journal.events.append(
            (seq, self.now, DISPATCH, ticket, client, dispatch.base_version, None, None, self._work_detail)
        )
        self.on_dispatch(dispatch)

    def _merge(self, merge: Merge) -> None:
        tickets, journal = merge.tickets, self.journal
        self.version = version = self.version + 1
        self.updates += len(tickets)
        seq = journal.next_seq
        journal.next_seq = seq + 1
        if len(tickets) == 1:
            ticket, detail = tickets[0], self._form_detail(merge)
            client, weight = self.dispatches[ticket].client, merge.weights[0]
            journal.events.append((seq, self.now, MERGE, ticket, client, version, weight, merge.keep, detail))
        else:
            detail = self._intern({**_form(merge), "tickets": tickets, "weights": merge.weights})
            journal.events.append((seq, self.now, MERGE, None, None, version, None, merge.keep, detail))
        if self.on_merge is not None:
            self.on_merge(merge)
        for ticket in tickets:
            dispatch = self.dispatches.pop(ticket)
            self.ledger.count_merge(dispatch.client, staleness_of(dispatch, version - 1))
        self.vectors.merge(merge)
        if merge.ends_round:
            self.round += 1
            journal.rounds.append(self.ledger.close_round(self.round, version, self.updates, self.now))
            self._check_divergence()
        if (merge.ends_round or self.evaluator.per_update) and not self.diverged:
            self._evaluate_if_due(merge)

    def _form_detail(self, merge: Merge) -> int:
        """The number of the text that says what kind of merge this is; mostly the same as the last time."""
        of, combiner, detail = self._last_forms[merge.ends_round]
        if of is not merge.of or combiner is not merge.combiner:
            detail = self._intern(_form(merge))
            self._last_forms[merge.ends_round] = (merge.of, merge.combiner, detail)
        return detail

    def _evaluate_if_due(self, merge: Merge) -> None:
        if self.evaluator.due(merge.ends_round, self.round, self.updates, len(merge.tickets)):
            self.evaluate()
            if self.stopping is not None:
                self._halt_early(self.stopping.reason(self.evaluator.last, self.round))

    def _check_divergence(self) -> None:
        params = self.vectors.params
        square = float(params.dot(params))
        if square <= self._divergence_square and square < inf:
            return
        if not _exact_norm(params) <= self._divergence_norm:
            norm = float(np.linalg.norm(params.astype(np.float64)))
            self.diverged = True
            self.halt(f"diverged: the model's norm is {norm:.3g} after round {self.round}")

    # ---- small things ----------------------------------------------------------------------------------------

    def _write(
        self, kind: int, ticket: int | None, client: int | None, a: float | None, b: float | None, detail: Any
    ) -> None:
        journal = self.journal
        seq = journal.next_seq
        journal.next_seq = seq + 1
        if type(detail) is str:
            detail = self._intern(detail)
        journal.events.append((seq, self.now, kind, ticket, client, self.version, a, b, detail))

    def _intern(self, value: Any) -> int:
        return self.journal.intern(to_json(value))

    def _forget_lost(self, ticket: int, energy: float) -> None:
        self.ledger.lost += 1
        self.ledger.energy += energy
        self._forget(ticket)

    def _forget(self, ticket: int) -> None:
        del self.dispatches[ticket]
        self.vectors.forget(ticket)

    # ---- checkpoints -----------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """All state but the vectors, as JSON can hold it."""
        return {
            "now": self.now,
            "diverged": self.diverged,
            "server": self.server.snapshot(),
            "ledger": self.ledger.snapshot(),
            "pending": self.evaluator.pending,
            "evaluated_at": self.evaluated_at,
            **({} if self.stopping is None else {"watch": self.stopping.snapshot()}),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Vectors and ledger are restored by whoever makes the Execution; the rest is."""
        self.now, self.diverged = snapshot["now"], snapshot["diverged"]
        self.evaluator.pending = dict(snapshot["pending"])
        self.evaluated_at = snapshot["evaluated_at"]
        if self.stopping is not None:
            self.stopping.restore(snapshot["watch"])
        self.server.restore(snapshot["server"])
        self.version, self.round, self.updates = self.server.version, self.server.round, self.server.updates
        dispatches = [*self.server.outstanding.values(), *self.server.waiting.values()]
        self.dispatches = {d.ticket: d for d in dispatches}


def _exact_norm(params: np.ndarray) -> float:
    """The Euclidean norm, also where its square is beyond the largest float."""
    scale = float(np.abs(params).max(initial=0.0))
    return scale * float(np.linalg.norm(params.astype(np.float64) / scale)) if 0.0 < scale < inf else scale


def _form(merge: Merge) -> dict[str, Any]:
    form: dict[str, Any] = {"of": merge.of, "ends_round": merge.ends_round}
    return form if merge.combiner is None else {**form, "combiner": merge.combiner}


def own_start_function(problem: Problem, vectors: Vectors, seed: int, how: Any) -> Callable[[int], np.ndarray]:
    """Which model a client that does not download starts from: its last one, or its own first draw."""

    def own_start(client: int) -> np.ndarray:
        model = vectors.own.get(client)
        return problem.init(seed, client=client, how=how) if model is None else model

    return own_start
