"""Trainings of perceptrons that several threads take from one table while it is being filled.

A line of the table is a training that is waiting, or was. Whoever sets its flag `CLAIMED` trains it and then sets its
flag `FINISHED`; nothing else is needed between the threads, so none waits for the interpreter or for a lock. Each
training is done from beginning to end by one thread, to the bits of `perceptron_loops.train_range`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.perceptron import NO_LABELS, Room
from asyncfed.kernels.perceptron_loops import train_one
from asyncfed.kernels.shared_flags import add_to_flag, numbers_at, read_flag, swap_flag

Array = NDArray[Any]

START_AT, TRAINED_AT, KEY, FIRST_ROW, NUM_ROWS, BATCH, STEPS = range(7)
"""Columns of `words`: the addresses of params, the key of all draws, and whole numbers."""

AWAKE, ADDED = 0, 1
"""Of `counts`: how many threads are looking for work, and how many trainings were ever added."""

IDLE_TURNS = 1 << 18
"""How often a thread without work looks for more before it gives up: about a tenth of a millisecond, which is less
than waking it again costs the one who wakes it, and longer than the server takes for an arrival."""


class TrainingTable:
    """Trainings on the rows `x` (n, d) and `targets`, at most `size` at a time, in batches of at most `batch` rows."""

    def __init__(self, x: Array, targets: Array, num_params: int, size: int, batch: int) -> None:
        none = np.empty((1, 0), x.dtype)
        labels, reals = (targets, none) if targets.ndim == 1 else (NO_LABELS, targets)
        self._data = (x, labels, reals, num_params)
        self.batch = batch
        self._words, self._numbers = np.zeros((size, 7), np.uint64), np.zeros((size, 4))
        self._claimed, self._finished = np.ones(size, np.int64), np.ones(size, np.int64)
        self._counts = np.zeros(2, np.int64)
        self._arrays: list[tuple[Array, Array] | None] = [None] * size  # what addresses refer to

    def add(self, line: int, start: Array, trained: Array, words: tuple[int, ...], numbers: tuple[float, ...]) -> int:
        """Let the params that a training from `start` arrives at be written to `trained`; see `words` above.

        The line must be free: never used, or finished. Answers with how many threads are looking for work.
        """
        self._arrays[line] = (start, trained)
        self._words[line] = (start.ctypes.data, trained.ctypes.data, *words)
        self._numbers[line] = numbers
        return int(_publish(self._claimed, self._finished, self._counts, line))

    def take(self, line: int) -> Array:
        """What was trained; the line is free again."""
        kept, self._arrays[line] = self._arrays[line], None
        assert kept is not None
        return kept[1]

    def withdraw(self, line: int) -> bool:
        """Whether nobody works on this line, now and later."""
        return bool(_claim(self._claimed, line)) or self.is_finished(line)

    def is_finished(self, line: int) -> bool:
        return bool(_read(self._finished, line))

    def train_waiting(self, room: Room) -> None:
        """Train whatever is waiting, until there was nothing for a while."""
        self._train(room, -1)

    def train_until(self, room: Room, line: int) -> None:
        """Train this line, or others as long as somebody else trains it; gives up waiting for it after a while."""
        self._train(room, line)

    def _train(self, room: Room, wanted: int) -> None:
        table = (self._words, self._numbers, self._claimed, self._finished, self._counts)
        _train_claimed(*self._data, room.layers, room.numbers, room.copy_size, *table, wanted)


@compiled
def _publish(claimed: Array, finished: Array, counts: Array, line: int) -> Any:
    swap_flag(finished, line, 0)
    swap_flag(claimed, line, 0)
    add_to_flag(counts, ADDED, 1)
    return read_flag(counts, AWAKE)


@compiled
def _claim(claimed: Array, line: int) -> Any:
    return swap_flag(claimed, line, 1) == 0


@compiled
def _read(flags: Array, line: int) -> Any:
    return read_flag(flags, line)


@compiled
def _find(claimed: Array, first: int) -> int:
    """The next line from `first` on that waits, now claimed; −1 if there is none."""
    size = claimed.shape[0]
    for k in range(size):
        line = first + k if first + k < size else first + k - size
        if read_flag(claimed, line) == 0 and swap_flag(claimed, line, 1) == 0:
            return line
    return -1


@compiled
def _train_claimed(
    x: Array,
    labels: Array,
    targets: Array,
    num_params: int,
    layers: Array,
    room: Array,
    copy_size: int,
    words: Array,
    numbers: Array,
    claimed: Array,
    finished: Array,
    counts: Array,
    wanted: int,
) -> None:
    """Train lines until the wanted one is finished or, without one (−1), until nothing was added for a while."""
    path, correction = np.empty(0), np.empty(0, x.dtype)
    line, idle, added = wanted, 0, read_flag(counts, ADDED)
    if wanted < 0:
        add_to_flag(counts, AWAKE, 1)
        line = _find(claimed, 0)
    elif swap_flag(claimed, wanted, 1) != 0:
        line = -1 if read_flag(finished, wanted) != 0 else _find(claimed, wanted)
    while True:
        if line >= 0:
            begin = np.int64(words[line, FIRST_ROW])
            end = begin + np.int64(words[line, NUM_ROWS])
            batch: Any = np.int64(words[line, BATCH])
            steps: Any = np.int64(words[line, STEPS])
            lr, decay, prox, momentum = numbers[line]
            train_one(
                x[begin:end],
                labels[begin:end] if labels.shape[0] > 0 else labels,
                targets[begin:end] if targets.shape[1] > 0 else targets,
                layers,
                room,
                copy_size,
                numbers_at(words[line, START_AT], num_params, x),
                numbers_at(words[line, TRAINED_AT], num_params, x),
                path,
                correction,
                words[line, KEY],
                batch,
                steps,
                lr,
                decay,
                prox,
                momentum,
            )
            swap_flag(finished, line, 1)
            idle = 0
        if wanted >= 0 and read_flag(finished, wanted) != 0:
            return
        now = read_flag(counts, ADDED)
        if line >= 0 or now != added:
            added, line = now, _find(claimed, max(line, 0))
            continue
        line, idle = -1, idle + 1
        if idle > IDLE_TURNS:
            if wanted >= 0:
                return
            # Not awake any more: whoever adds after this line wakes a thread, what was added before is found here.
            add_to_flag(counts, AWAKE, -1)
            line = _find(claimed, 0)
            if line < 0:
                return
            add_to_flag(counts, AWAKE, 1)
            idle = 0
