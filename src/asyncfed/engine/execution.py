"""Carrying out what the server decides: move the vectors, count in the ledger, write the journal.

It knows no clock: whoever drives it (the simulator's heap, a replayed journal) sets `now`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError, StrategyError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import UNSET, from_plain, replace, to_json, to_plain
from asyncfed.core.server import Server
from asyncfed.core.types import Cancel, Combine, Dispatch, Drop, Merge, Report, Stop, Wake, Work, staleness_of
from asyncfed.engine.background_evaluation import BackgroundEvaluation
from asyncfed.engine.evaluation import Evaluator
from asyncfed.engine.stopping import StoppingMonitor, nothing_merged
from asyncfed.kernels.noise_keys import write_key
from asyncfed.problems.protocol import ClientShard, Problem
from asyncfed.rules import Arrival, RuleRun, Vectors
from asyncfed.rules.protocol import SERVER_ROWS, Probe
from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger
from asyncfed.store.loss_reasons import MODEL_LOST
from asyncfed.store.schema import (
    CANCEL,
    DISPATCH,
    DROP,
    JOIN,
    LEAVE,
    LOST,
    MERGE,
    REFUSED,
    REPORT,
    SKIPPED,
    STOP,
    WAKE,
)
from asyncfed.uplinks.chain import SKIPPED_BYTES, declared_size
from asyncfed.uplinks.norms import square_norm

MergeObserver: TypeAlias = "Callable[[Execution, Merge], None]"
"""Called with every merge just before it is carried out."""

OwnStart: TypeAlias = Callable[[int, bool], np.ndarray]
"""The own model of a client that does not download: its last one, or (True) the one it drew first."""


class Execution:
    """One run in progress.

    Whoever drives it sets what it cannot know: `on_dispatch` is called with every ticket that goes out, `on_wake` with
    the moment and the number of every timer, `on_cancel` with every ticket that is given up, to be answered with the
    seconds and joules it has cost; `noise_key` with every version that a rule makes with noise. With `background`,
    models are measured while the run goes on, unless what is measured may stop it.
    """

    def __init__(
        self,
        server: Server,
        vectors: Vectors,
        ledger: Ledger,
        journal: Journal,
        evaluator: Evaluator,
        own_start: OwnStart,
        divergence_norm: float,
        rule: RuleRun | None = None,
        probe: Probe | None = None,
        seed: int = 0,
        trusted: ClientShard | None = None,
    ) -> None:
        self.server = server
        self.vectors = vectors
        self.ledger = ledger
        self.journal = journal
        self.evaluator = evaluator
        self.background: BackgroundEvaluation | None = None
        self.now = 0.0
        # Counted merge by merge, because the server counts all merges of a decision before the first is carried out.
        self.version = server.version
        self.round = server.round
        self.updates = server.updates
        self.evaluated_at: int | None = None
        self.diverged = False
        self.stopping: StoppingMonitor | None = None
        self.best: np.ndarray | None = None  # the model that the run is left with, unless it is the last one
        self._halted = False
        self.most_drops: float = inf  # so many in a row end the run; set by whoever drives it, not when it is repeated
        self._unmerged, self._unmerged_at = 0, 0  # how many were dropped or skipped in a row, and at which version
        self.on_dispatch: Callable[[Dispatch], None] = lambda dispatch: None
        self.on_merge: Callable[[Merge], None] | None = None
        self.on_wake: Callable[[float, int], None] = lambda due, number: None
        self.on_cancel: Callable[[Dispatch], tuple[float, float]] = lambda dispatch: (0.0, 0.0)
        self.noise_key: Callable[[int], int] | None = None
        self.rule = rule
        self.has_extras = rule is not None  # or, once one is dispatched, a ticket that has them
        self._probe, self._trusted = probe, trusted
        self._merge_key, self._measure_key = purpose_key(seed, "merge"), purpose_key(seed, "measure")
        self._downlink_key = purpose_key(seed, "downlink")
        self.filtered: dict[int, int] = {}
        self._reports: dict[int, Report] = {}  # with a rule: those that wait to be merged
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
        self.carry_out(self.server.start())

    def receive(self, report: Report, energy: float) -> None:
        """A report has arrived; its trained model is in `vectors.trained`."""
        if self.has_extras:
            report = self._accept(report)
        outputs = self.server.receive(report)
        ticket, client, duration = report.ticket, report.client, report.duration
        bytes_up, detail = self.ledger.model_bytes, None
        if self.has_extras:
            bytes_up, detail = self._bytes_up(report), self._report_detail(report)
        elif report.metrics is not None:
            detail = self._intern(report.metrics)
        journal = self.journal
        seq = journal.next_seq
        journal.next_seq = seq + 1
        journal.events.append((seq, self.now, REPORT, ticket, client, self.version, duration, energy, detail))
        self.ledger.count_report(duration, energy, bytes_up)
        self.carry_out(outputs)
        self._end_if_spent()

    def skip(self, ticket: int, duration: float, energy: float, memory: int | None = None) -> None:
        """A ticket was worked on for `duration` seconds, and its client, which is at another one now, sent nothing.

        Args:
            ticket: its number.
            duration: seconds that the work took.
            energy: joules that it took.
            memory: the ticket whose memory the client really used; None for work that does not remember.
        """
        dispatch, vectors = self.dispatches[ticket], self.vectors
        outputs = self.server.skip(ticket, duration)
        vectors.accept_memory(dispatch)
        if dispatch.work.start == "own":  # what it trained is in the memory of its uplinks, until it is sent
            vectors.own[dispatch.client] = vectors.starts[ticket]
        detail = None if memory is None or memory == dispatch.memory else self._intern({"memory": memory})
        self._write(SKIPPED, ticket, dispatch.client, duration, energy, detail)
        self.ledger.count_skip(duration, energy, SKIPPED_BYTES)
        self._count_unmerged()
        self._forget(ticket)
        self.carry_out(outputs)
        self._end_if_spent()

    def lose(self, ticket: int, after: float, energy: float, reason: str | None = None) -> None:
        """A ticket will never be reported: lost `after` seconds, having cost `energy` joules."""
        client, forgets = self.vectors.client_of[ticket], reason == MODEL_LOST
        outputs = self.server.lose(ticket, forgets)
        if forgets:
            self.vectors.forget_memory(client)
        self._write(LOST, ticket, client, after, energy, reason)
        self._forget_lost(ticket, energy)
        self.carry_out(outputs)
        self._end_if_spent()

    def join(self, client: int, num_examples: int) -> None:
        """A client with so many rows is there from now on."""
        outputs = self.server.join(client, num_examples)
        self._write(JOIN, None, client, float(num_examples), None, None)
        self.carry_out(outputs)

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
        self.carry_out(outputs)

    def wake(self, number: int) -> None:
        """The moment of a timer has come."""
        outputs = self.server.wake(number, self.now)
        self._write(WAKE, None, None, float(number), None, None)
        self.carry_out(outputs)

    def halt(self, reason: str) -> None:
        """End the run."""
        self.carry_out(self.server.halt(reason))
        self._halted = True

    @property
    def halted(self) -> bool:
        """Whether the run was ended by `halt`, for what it was just found to be."""
        return self._halted

    def _end_if_spent(self) -> None:
        """Stop if the energy is spent, or nothing was merged for so long that nothing will be."""
        if self.stopping is not None:
            self._halt_early(self.stopping.spent(self.ledger.energy))
        if self._unmerged >= self.most_drops and self._unmerged_at == self.version:
            self._halt_early(nothing_merged(self._unmerged, self.ledger.skipped > 0))

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

    def evaluate(self) -> str | None:
        """Measure the model as it is now. Returns why the run is to stop, if the measurement says so."""
        model = (self.vectors.params, self.version, self.round, self.updates, self.now)
        self.evaluated_at = self.updates
        if self.background is not None and self.stopping is None:
            self.journal.evaluations += self.background.begin(*model)
            return None
        self.journal.evaluations.append(self.evaluator.row(*model))
        if self.stopping is None:
            return None
        reason = self.stopping.reason(self.evaluator.last, self.round)
        if self.stopping.is_best(self.evaluator.last):
            self.best = self.vectors.params  # which nobody changes: a merge makes a new one
        return reason

    def take_evaluation(self, wait: bool = False) -> None:
        """Write down what was measured in the background, if it is done or is to be waited for."""
        if self.background is not None:
            self.journal.evaluations += self.background.take(wait)

    # ---- outputs ---------------------------------------------------------------------------------------------

    def carry_out(self, outputs: Sequence[Any]) -> None:
        """Do what the server decided, in order."""
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
                self._count_unmerged()
                self._forget(output.ticket)
            elif kind is Cancel:
                self._cancel(output)
            elif kind is Wake:
                self.on_wake(self.now + output.after, output.number)
            elif kind is Stop:
                self._write(STOP, None, None, None, None, output.reason)

    def _count_unmerged(self) -> None:
        self._unmerged = self._unmerged + 1 if self._unmerged_at == self.version else 1
        self._unmerged_at = self.version

    def _dispatch(self, dispatch: Dispatch) -> None:
        ticket, client, work = dispatch.ticket, dispatch.client, dispatch.work
        if work is not self._work:
            self.intern_work(work)
            self.has_extras = self.has_extras or has_extras(dispatch)
        self.dispatches[ticket] = dispatch
        if work.downlink is not UNSET:
            key = draw_key(self._downlink_key, client, ticket)
            self.vectors.dispatch_difference(dispatch, work.downlink, self._older_start(dispatch), key)
            self.ledger.bytes_down += self.vectors.sent_bytes(ticket)
        elif work.start == "server":
            self.vectors.dispatch(dispatch, self._older_start(dispatch))
            self.ledger.bytes_down += self.ledger.model_bytes
        else:
            self.vectors.dispatch(dispatch, self._own_start(client, False))
        memory = self._send_along(dispatch) if self.has_extras else None
        journal = self.journal
        seq = journal.next_seq
        journal.next_seq = seq + 1
        journal.events.append(
            (seq, self.now, DISPATCH, ticket, client, dispatch.base_version, memory, None, self._work_detail)
        )
        self.on_dispatch(dispatch)

    def intern_work(self, work: Work) -> int:
        """The number of the text of a work, that of the next tickets."""
        if work is not self._work:
            self._work, self._work_detail = work, self._intern(work)
        return self._work_detail

    def _older_start(self, dispatch: Dispatch) -> np.ndarray | None:
        """The model of an older version, which another ticket holds; None if the ticket starts from the present one."""
        version = dispatch.base_version
        if version == self.version:
            return None
        for other in self.dispatches.values():
            if other.base_version == version and other.work.start == "server" and other is not dispatch:
                exact = self.vectors.targets.get(other.ticket)
                return self.vectors.starts[other.ticket] if exact is None else exact
        raise StrategyError(
            f"{type(self.server.strategy).__name__} trains from version {version}, which no ticket holds any more. "
            "This is a defect of the strategy, not of a client."
        )

    def _cancel(self, cancel: Cancel) -> None:
        dispatch = self.dispatches[cancel.ticket]
        after, energy = self.on_cancel(dispatch)
        self._write(CANCEL, cancel.ticket, dispatch.client, after, energy, cancel.reason)
        self.ledger.energy += energy
        self._forget(cancel.ticket)

    def _merge(self, merge: Merge) -> None:
        if self.rule is None:
            self._merge_plainly(merge)
        else:
            self._merge_by_rule(merge, self.rule)
        self.finish_merge(merge)

    def finish_merge(self, merge: Merge) -> None:
        """After a merge: close its round, look for divergence, measure. The run may be halted afterwards."""
        if merge.ends_round:
            self.round += 1
            self.journal.rounds.append(self.ledger.close_round(self.round, self.version, self.updates, self.now))
            self._check_divergence()
        if (merge.ends_round or self.evaluator.per_update) and not self.diverged:
            self._evaluate_if_due(merge)

    def _merge_plainly(self, merge: Merge) -> None:
        self.write_merge(merge, self.dispatches[merge.tickets[0]].client)
        if self.on_merge is not None:
            self.on_merge(merge)
        for ticket in merge.tickets:
            dispatch = self.dispatches.pop(ticket)
            self.ledger.count_merge(dispatch.client, staleness_of(dispatch, self.version - 1))
        self.vectors.merge(merge)

    def write_merge(self, merge: Merge, client: int) -> None:
        """The event of a merge without a rule, whose first ticket is this client's: it makes the next version."""
        tickets, journal = merge.tickets, self.journal
        self.version = version = self.version + 1
        self.updates += len(tickets)
        seq = journal.next_seq
        journal.next_seq = seq + 1
        if len(tickets) == 1:
            detail = self.intern_form(merge)
            weight, keep = float(merge.weights[0]), float(merge.keep)  # as they are read back, whoever wrote 1
            journal.events.append((seq, self.now, MERGE, tickets[0], client, version, weight, keep, detail))
        else:
            detail = self._intern({**_form(merge), "tickets": tickets, "weights": merge.weights})
            journal.events.append((seq, self.now, MERGE, None, None, version, None, merge.keep, detail))

    # ---- with a rule, or with uplinks --------------------------------------------------------------------------

    def _send_along(self, dispatch: Dispatch) -> float | None:
        """What the rule sends goes down with the model. Answers with the memory that the client is to use, if any."""
        if self.rule is not None:
            sent = self.rule.send(dispatch.ticket, dispatch.client)
            self.ledger.bytes_down += sum(array.nbytes for array in sent.values())
        if dispatch.memory is None or (dispatch.work.uplink is UNSET and dispatch.work.downlink is UNSET):
            return None
        return float(dispatch.memory)

    def first_model(self, client: int) -> np.ndarray:
        """The model that this client draws for itself, where it starts from its own."""
        return self._own_start(client, True)

    def start_of(self, dispatch: Dispatch, memory: int | None) -> np.ndarray:
        """The model that a ticket's training began with, if its client used the memory of ticket `memory`.

        A client that starts from its own model, and has lost it, begins with the first one it drew.
        """
        if dispatch.work.start == "own" and memory == -1 and dispatch.memory != -1:
            return self.first_model(dispatch.client)
        return self.vectors.starts[dispatch.ticket]

    def _accept(self, report: Report) -> Report:
        """The report with what the rule measures about it; it may be merged, and what its client remembers used."""
        dispatch = self.dispatches.get(report.ticket)
        if dispatch is None:
            return report  # the server will refuse it
        self.vectors.accept_memory(dispatch)
        if report.memory == dispatch.memory:
            report = replace(report, memory=None)  # only what is not as it should be is written down
        if self.rule is not None:
            arrival = self._arrival(dispatch, report, 0.0)
            measured = self.rule.measure(self.vectors.params, arrival, self._run_probe)
            if measured:
                report = replace(report, metrics={**(report.metrics or {}), **measured})
            self._reports[report.ticket] = report
        return report

    def _run_probe(self, params: np.ndarray, client: int, work: Work, version: int) -> np.ndarray:
        if self._probe is None:
            raise ConfigError(
                f"strategy.rule asks the server to train on client {client}'s data, which this server does not hold. "
                "Simulate the run, or run it live on one machine."
            )
        self.take_evaluation(wait=True)  # a problem is not used by two threads at a time
        key = draw_key(self._measure_key, client, version)
        if client == SERVER_ROWS and self._trusted is not None:
            return self._trusted.train(params, work, key)
        return self._probe(params, client, work, key)

    def _arrival(self, dispatch: Dispatch, report: Report, weight: float) -> Arrival:
        ticket, vectors = dispatch.ticket, self.vectors
        metrics = report.metrics or {}
        steps = metrics.get("steps")
        return Arrival(
            ticket,
            dispatch.client,
            weight,
            staleness_of(dispatch, self.version),
            dispatch.work,
            dispatch.work.count_steps(report.num_examples) if steps is None else int(steps),
            report.num_examples,
            vectors.starts[ticket],
            vectors.trained[ticket],
            self.rule.sent_with(ticket) if self.rule is not None else {},
            metrics,
        )

    def _merge_by_rule(self, merge: Merge, rule: RuleRun) -> None:
        """The event comes last, because it says what the rule found."""
        if self.on_merge is not None:
            self.on_merge(merge)
        pairs = zip(merge.tickets, merge.weights, strict=True)
        arrivals = [self._arrival(self.dispatches[t], self._reports.pop(t), weight) for t, weight in pairs]
        version = self.version + 1
        noise = self.noise_key if rule.rule.draws_noise else None
        key = draw_key(self._merge_key, 0, version) if noise is None else noise(version)
        self.vectors.params, info = rule.step(self.vectors.params, arrivals, merge, key)
        if "filtered" in info:
            self._count_filtered(info, arrivals)
        noted: dict[str, Any] = dict(info)
        if noise is not None:
            noted["noise_key"] = write_key(key)
        self.version, self.updates = version, self.updates + len(arrivals)
        form = {**_form(merge), "info": noted} if noted else _form(merge)
        if len(arrivals) == 1:
            [arrival] = arrivals
            detail = self._intern(form)
            self._write(MERGE, arrival.ticket, arrival.client, arrival.weight, merge.keep, detail)
        else:
            detail = self._intern({**form, "tickets": merge.tickets, "weights": merge.weights})
            self._write(MERGE, None, None, None, merge.keep, detail)
        for arrival in arrivals:
            dispatch = self.dispatches[arrival.ticket]
            self.ledger.count_merge(arrival.client, staleness_of(dispatch, version - 1))
            self._forget(arrival.ticket)

    def _count_filtered(self, info: Mapping[str, float], arrivals: Sequence[Arrival]) -> None:
        """Count by client what the rule filtered: for whoever watches the run; the journal says it all."""
        for arrival in arrivals:
            if f"filtered/{arrival.ticket}" in info:
                self.filtered[arrival.client] = self.filtered.get(arrival.client, 0) + 1

    def _report_detail(self, report: Report) -> int | None:
        if report.metrics is None and report.memory is None:
            return None
        memory = {} if report.memory is None else {"memory": report.memory}
        return self._intern({**(report.metrics or {}), **memory})

    def _bytes_up(self, report: Report) -> int:
        """What the client sent: the model, the message of its uplinks, or what the rule's protocol has it send."""
        work = self.dispatches[report.ticket].work
        if self.rule is not None and self.rule.upload_size is not None:
            return self.rule.upload_size
        if work.uplink is UNSET:
            return self.ledger.model_bytes
        params = self.vectors.params
        declared = declared_size(work.uplink, params.size, params.itemsize)
        return int((report.metrics or {})["bytes"]) if declared is None else declared

    def intern_form(self, merge: Merge) -> int:
        """The number of the text that says what kind of merge this is; mostly the same as the last time."""
        of, combiner, detail = self._last_forms[merge.ends_round]
        if of is not merge.of or combiner is not merge.combiner:
            detail = self._intern(_form(merge))
            self._last_forms[merge.ends_round] = (merge.of, merge.combiner, detail)
        return detail

    def _evaluate_if_due(self, merge: Merge) -> None:
        if self.evaluator.due(merge.ends_round, self.round, self.updates, len(merge.tickets)):
            self._halt_early(self.evaluate())

    def _check_divergence(self) -> None:
        params = self.vectors.params
        square = square_norm(params)
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
        if self.rule is not None:
            self.rule.forget(ticket)
            self._reports.pop(ticket, None)

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
            **({"drops": self._unmerged} if self._unmerged and self._unmerged_at == self.version else {}),
            **({} if self.stopping is None else {"watch": self.stopping.snapshot()}),
            **({} if self.rule is None else {"reports": to_plain(list(self._reports.values()))}),
        }

    def dump(self) -> dict[str, np.ndarray]:
        """The vectors, as named arrays."""
        best = {} if self.best is None else {"best": self.best}
        return {**self.vectors.dump(), **best, **({} if self.rule is None else self.rule.dump())}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Vectors and ledger are restored by whoever makes the Execution; the rest is."""
        self.now, self.diverged = snapshot["now"], snapshot["diverged"]
        self.evaluator.pending = dict(snapshot["pending"])
        self.evaluated_at = snapshot["evaluated_at"]
        if self.stopping is not None:
            self.stopping.restore(snapshot["watch"])
        self.server.restore(snapshot["server"])
        self.version, self.round, self.updates = self.server.version, self.server.round, self.server.updates
        self._unmerged, self._unmerged_at = snapshot.get("drops", 0), self.version
        dispatches = [*self.server.outstanding.values(), *self.server.waiting.values()]
        self.dispatches = {d.ticket: d for d in dispatches}
        self.has_extras = self.has_extras or any(map(has_extras, dispatches))
        reports = from_plain(snapshot.get("reports", []), list[Report])
        self._reports = {report.ticket: report for report in reports}


def has_extras(dispatch: Dispatch) -> bool:
    """Whether something else than a model comes back with this ticket, or its client remembers something."""
    work = dispatch.work
    special = (work.uplink, work.patience, work.loss, work.start_loss, work.start_rms)
    return dispatch.memory is not None or any(setting is not UNSET for setting in special)


def _exact_norm(params: np.ndarray) -> float:
    """The Euclidean norm, also where its square is beyond the largest float."""
    scale = float(np.abs(params).max(initial=0.0))
    return scale * float(np.linalg.norm(params.astype(np.float64) / scale)) if 0.0 < scale < inf else scale


def _form(merge: Merge) -> dict[str, Any]:
    form: dict[str, Any] = {"of": merge.of, "ends_round": merge.ends_round}
    return form if merge.combiner is None else {**form, "combiner": merge.combiner}


def own_start_function(problem: Problem, vectors: Vectors, seed: int, how: Any) -> OwnStart:
    """Which model a client that does not download starts from."""

    def own_start(client: int, anew: bool) -> np.ndarray:
        model = None if anew else vectors.own.get(client)
        return problem.init(seed, client=client, how=how) if model is None else model

    return own_start
