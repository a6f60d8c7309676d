"""Tickets that are trained as soon as they are out, by other threads, while the server merges those before.

A training depends on nothing but its ticket, so it does not matter who does it and when. Whoever needs a ticket that
nobody has begun with trains it itself; so no thread waits as long as there is something to train.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from concurrent.futures import Future
from typing import Any

import numpy as np

from asyncfed.core.types import Work
from asyncfed.kernels.claimed_training import TrainingTable
from asyncfed.kernels.recycled_memory import empty
from asyncfed.kernels.threads import start_elsewhere
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.compiled_training import CompiledTraining, Ticket

FIRST_LINES = 64

TicketOf = Callable[[int, Work, int], Ticket]
"""A training by its client, work and key."""


class CompiledAhead:
    """An `AheadTraining` by the compiled kernel, which several threads run without the interpreter lock.

    Args:
        compiled: the kernel, with the rows.
        ticket_of: what a client's work means in rows and steps.
        num_params: numbers in the params.
        dtype: their precision.
        least_cost: rows times steps times params below which tickets are trained together, later.
        threads: the caller's and those that it wakes, 2 or more.
    """

    def __init__(
        self,
        compiled: CompiledTraining,
        ticket_of: TicketOf,
        num_params: int,
        dtype: np.dtype[Any],
        least_cost: int,
        threads: int,
    ) -> None:
        self._compiled, self._ticket_of, self._num_params, self._dtype = compiled, ticket_of, num_params, dtype
        self._least_cost, self._threads = least_cost, threads
        self._places: dict[int, tuple[TrainingTable, int]] = {}
        self._helpers: list[Future[None]] = []
        self._table: TrainingTable | None = None
        self._size, self._free = FIRST_LINES, deque[int]()

    def begin(self, ticket: int, start: Array, client: int, work: Work, key: int) -> bool:
        """See `AheadTraining`; the kernel knows no patience."""
        training = self._ticket_of(client, work, key)
        if work.patience or training.row_steps * self._num_params < self._least_cost:
            return False
        if start.dtype != self._dtype or not start.flags.c_contiguous:
            return False
        table = self._table
        if table is None or not self._free or training.batch > table.batch:
            table = self._new_table(training.batch)
        line = self._free.popleft()
        self._places[ticket] = (table, line)
        words = (key, training.first, training.num_rows, training.batch, training.steps)
        numbers = (work.learning_rate, work.decay, work.proximal, work.momentum or 0.0)
        awake = table.add(line, start, empty(self._num_params, self._dtype), words, numbers)
        if awake < self._threads - 1:
            self._wake(table)
        return True

    def result(self, ticket: int) -> Array:
        """See `AheadTraining`."""
        table, line = self._places.pop(ticket)
        if not table.is_finished(line):
            with self._compiled.room(table.batch) as room:
                table.train_until(room, line)
            if not table.is_finished(line):  # whoever trains it was interrupted: wait without using the processor
                self._wait()
        if table is self._table:
            self._free.append(line)
        return table.take(line)

    def keep_only(self, tickets: Container[int]) -> None:
        """See `AheadTraining`. What is being trained at this moment is forgotten the next time."""
        for ticket in [t for t in self._places if t not in tickets]:
            table, line = self._places[ticket]
            if table.withdraw(line):
                del self._places[ticket]
                table.take(line)
                if table is self._table:
                    self._free.append(line)

    def _new_table(self, batch: int) -> TrainingTable:
        """One with more lines or larger batches, for what comes from now on; tickets in the one before stay there."""
        if self._table is not None:
            self._size *= 1 if self._free else 2  # with clients of many sizes, batches grow again and again
            batch = max(batch, self._table.batch)
        self._table, self._free = self._compiled.table(self._num_params, self._size, batch), deque(range(self._size))
        return self._table

    def _wake(self, table: TrainingTable) -> None:
        def help_with_it() -> None:
            with self._compiled.room(table.batch) as room:
                table.train_waiting(room)

        self._helpers = [helper for helper in self._helpers if not helper.done()]
        if len(self._helpers) < self._threads:  # else they have been asked and have not come yet
            self._helpers.append(start_elsewhere(help_with_it, threads=self._threads))

    def _wait(self) -> None:
        for helper in self._helpers:
            helper.result()


class ModuleAhead:
    """An `AheadTraining` by torch, which gives up the interpreter lock during its larger operations.

    Args:
        train: the params that a ticket arrives at, from (1, p) params.
        ticket_of: what a client's work means in rows and steps.
        num_params: numbers in the params.
        least_cost: rows times steps times params below which the threads would wait for the interpreter.
        threads: the caller's and those that it wakes, 2 or more.
    """

    def __init__(
        self,
        train: Callable[[Array, Ticket], Array],
        ticket_of: TicketOf,
        num_params: int,
        least_cost: int,
        threads: int,
    ) -> None:
        self._train, self._ticket_of, self._threads = train, ticket_of, threads
        self._num_params, self._least_cost = num_params, least_cost
        self._jobs: dict[int, tuple[Future[Array], Array, Ticket]] = {}

    def begin(self, ticket: int, start: Array, client: int, work: Work, key: int) -> bool:
        """See `AheadTraining`; with patience the steps made are wanted too."""
        training = self._ticket_of(client, work, key)
        if work.patience or training.row_steps * self._num_params < self._least_cost:
            return False
        job = start_elsewhere(self._train, start[None], training, threads=self._threads)
        self._jobs[ticket] = (job, start, training)
        return True

    def result(self, ticket: int) -> Array:
        """See `AheadTraining`."""
        job, start, training = self._jobs.pop(ticket)
        return self._train(start[None], training) if job.cancel() else job.result()

    def keep_only(self, tickets: Container[int]) -> None:
        """See `AheadTraining`."""
        for ticket in [t for t in self._jobs if t not in tickets]:
            self._jobs.pop(ticket)[0].cancel()
