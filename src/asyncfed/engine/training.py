"""Training done late and together, or ahead by other threads.

What a dispatched client computes depends only on what its ticket names: the model it starts from, what was sent along,
the memory it uses. So nothing is trained until the first of the pending trainings is needed; then all of them are, in
one call that uses every thread. Or, if the problem can do that, a ticket is trained as soon as it is out, while the
server does something else. The results are those of training one by one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import UNSET
from asyncfed.core.types import Dispatch, Work
from asyncfed.problems.client_measurements import asks_for_measurements, measure_client
from asyncfed.problems.protocol import AheadTraining, Jobs, Problem, TrainsAhead
from asyncfed.problems.row_losses import client_row_losses
from asyncfed.rules import RuleRun, Vectors
from asyncfed.uplinks.chain import declared_size, decode_message, encode_change, init_memory, message_size
from asyncfed.uplinks.client_memory import ClientMemory


class LateTraining:
    """`pending` holds the dispatches still to be trained; `train_all` puts their models into `vectors.trained`.

    After `train_ahead`, plain tickets that are added do not become pending; `train_for` puts their models there.

    Tickets whose clients found nothing worth sending are in `vectors.skipped` besides.

    `measured` holds, by ticket, what is known only after training: `steps` where they may be fewer than was asked for,
    the losses that the work asks for, `bytes` where the size of what is sent depends on it.

    Args:
        problem: what is trained.
        vectors: where the models that trainings start from are, and where the trained ones go.
        seed: the run's; each training's draws are keyed by it, the client and the ticket.
        threads: threads to train with, 1 or more.
        rule: knows what was sent along with a ticket; None if nothing ever is.
    """

    def __init__(
        self, problem: Problem, vectors: Vectors, seed: int, threads: int, rule: RuleRun | None = None
    ) -> None:
        self.key, self._uplink_key = purpose_key(seed, "train"), purpose_key(seed, "uplink")
        self._problem = problem
        self._vectors = vectors
        self._threads = threads
        self._rule = rule
        self._ahead: AheadTraining | None = None
        self._begun: set[int] = set()
        self.pending: dict[int, Dispatch] = {}
        self.measured: dict[int, dict[str, float]] = {}

    def train_ahead(self) -> None:
        """From now on have tickets trained by other threads as soon as they are out, if the problem can do that."""
        if self._threads > 1 and isinstance(self._problem, TrainsAhead):
            self._ahead = self._problem.train_ahead(self._threads)

    def add(self, dispatch: Dispatch) -> None:
        """A ticket is out, and what it starts from is in `vectors.starts`."""
        ahead, work, ticket, client = self._ahead, dispatch.work, dispatch.ticket, dispatch.client
        if ahead is None or self._rule is not None or work.uplink is not UNSET or asks_for_measurements(work):
            self.pending[ticket] = dispatch
        elif ahead.begin(ticket, self._vectors.starts[ticket], client, work, draw_key(self.key, client, ticket)):
            self._begun.add(ticket)
            if len(self._begun) > 2 * len(self._vectors.starts) + 64:  # most of them were lost or cancelled
                self._begun.intersection_update(self._vectors.starts)
                ahead.keep_only(self._begun)
        else:
            self.pending[ticket] = dispatch

    def train_for(self, ticket: int) -> None:
        """A ticket is needed: take what was trained ahead, or train what is pending, this ticket among it."""
        if ticket in self._begun and self._ahead is not None:
            self._begun.discard(ticket)
            self._vectors.trained[ticket] = self._ahead.result(ticket)
        else:
            self.train_all()

    def end(self) -> None:
        """Nobody will need a ticket any more."""
        self._begun.clear()
        if self._ahead is not None:
            self._ahead.keep_only(())

    def train_all(self) -> None:
        """Train what is pending, in one call."""
        start_of = self._vectors.starts
        # Tickets that were lost meanwhile have no start any more.
        pending = [dispatch for ticket, dispatch in self.pending.items() if ticket in start_of]
        self.pending.clear()
        self.train(pending)

    def train(self, dispatches: Sequence[Dispatch]) -> None:
        """Train these, in one call."""
        start_of, key, trained = self._vectors.starts, self.key, self._vectors.trained
        starts, clients, works, keys = [], [], [], []
        last, counted, measured, uplinked = None, False, False, False
        for dispatch in dispatches:
            ticket, client, work = dispatch.ticket, dispatch.client, dispatch.work
            starts.append(start_of[ticket])
            clients.append(client)
            works.append(work)
            keys.append(draw_key(key, client, ticket))
            if work is not last:  # mostly it is the same
                last, counted, measured = work, counted or ends_early(work), measured or asks_for_measurements(work)
                uplinked = uplinked or work.uplink is not UNSET
        copies = np.concatenate(starts).reshape(len(starts), -1)
        counts = np.zeros(len(works), np.int64) if counted else None
        corrections = sent_corrections(self._rule, dispatches, copies)
        jobs = Jobs(copies, clients, works, keys, True, corrections, counts, starts)
        models = self._problem.local_train_many(jobs, self._threads)
        for dispatch, model in zip(dispatches, models, strict=True):
            trained[dispatch.ticket] = model
        if counts is not None:
            for dispatch, count in zip(dispatches, counts.tolist(), strict=True):
                if ends_early(dispatch.work):
                    self.measured[dispatch.ticket] = {"steps": float(count)}
        for dispatch in dispatches if measured else ():
            if asks_for_measurements(dispatch.work):
                self.measured.setdefault(dispatch.ticket, {}).update(self._measure(dispatch))
        if uplinked:
            for dispatch in dispatches:
                if dispatch.work.uplink is not UNSET:
                    self._send(dispatch)

    def _measure(self, dispatch: Dispatch) -> dict[str, float]:
        """The losses that the work asks for."""
        problem, client, ticket = self._problem, dispatch.client, dispatch.ticket
        return measure_client(
            dispatch.work,
            self._vectors.starts[ticket],
            self._vectors.trained[ticket],
            lambda params: problem.client_loss(params, client),
            lambda params: client_row_losses(problem, params, client),
        )

    def _send(self, dispatch: Dispatch) -> None:
        """Put the change through the uplinks, with the memory that the dispatch names; keep what the server sees."""
        ticket, client, vectors, uplinks = dispatch.ticket, dispatch.client, self._vectors, dispatch.work.uplink
        assert uplinks is not UNSET
        start, model = vectors.starts[ticket], vectors.trained[ticket]
        first = init_memory(uplinks, start.size, start.dtype)
        kept = first
        if dispatch.memory is not None:
            kept, _ = vectors.memories.setdefault(client, ClientMemory()).recall(dispatch.memory, first)
        message, after = encode_change(uplinks, kept, model - start, draw_key(self._uplink_key, client, ticket), start)
        if message is None:
            vectors.skipped.add(ticket)
        mirror = vectors.mirror(dispatch, dispatch.memory)
        change, mirror = decode_message(uplinks, message, start.size, start.dtype, mirror)
        vectors.trained[ticket] = start + change
        if dispatch.memory is not None:
            vectors.new_memories[ticket] = after
        if mirror:
            vectors.new_mirrors[ticket] = mirror
        if declared_size(uplinks, start.size, start.itemsize) is None:
            self.measured.setdefault(ticket, {})["bytes"] = float(message_size(message))


def sent_corrections(rule: RuleRun | None, dispatches: Sequence[Dispatch], like: np.ndarray) -> np.ndarray | None:
    """What was sent along with each ticket to be added to its gradients; None if nothing was."""
    if rule is None:
        return None
    corrections = [rule.sent_with(dispatch.ticket).get("correction") for dispatch in dispatches]
    if all(correction is None for correction in corrections):
        return None
    rows = np.zeros_like(like)
    for row, correction in zip(rows, corrections, strict=True):
        if correction is not None:
            row[:] = correction
    return rows


def ends_early(work: Work) -> bool:
    """Whether a client may make fewer steps than it was asked for."""
    return work.patience is not UNSET


def known_before(work: Work, num_params: int, itemsize: int) -> bool:
    """Whether time, energy and bytes of a ticket are known before it is trained."""
    if ends_early(work):
        return False
    return work.uplink is UNSET or declared_size(work.uplink, num_params, itemsize) is not None
