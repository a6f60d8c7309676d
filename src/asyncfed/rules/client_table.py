"""A vector for each client, as named arrays in a rule's memory: written once for all rules that keep one.

    row_c = the last vector put for client c, 0 before the first;     sum = sum_c row_c;     mean = sum / n

n counts all clients, also those without a row; `mean_of_rows` leaves them out. Putting a vector moves the sum by the
difference, and once in as many changes as there are rows the sum is computed anew from the rows: rounding cannot build
up, and a change costs a few passes over one vector, however many there are. Rows are made when they are first needed,
in the order of the first puts, and their array doubles when it is full.
"""

from __future__ import annotations

import numpy as np

from asyncfed.rules.protocol import Arrays

UNKNOWN, NO_ROW = -2, -1
"""In the index of rows: a number that was no client's so far, and a client whose vector is 0."""


class ClientTable:
    """The table of this name in a rule's memory. It keeps nothing itself: make one whenever it is needed.

    The vectors have the dtype of the model, the sum is float64.

    Args:
        memory: the rule's; its arrays are changed in place, or replaced where they grow.
        name: what the names of the table's arrays begin with.

    >>> memory = ClientTable.init("h", np.zeros(2), num_clients=4)
    >>> table = ClientTable(memory, "h")
    >>> table.put(3, np.array([4.0, 8.0]))
    >>> table.mean().tolist(), table.row(0).tolist()
    ([1.0, 2.0], [0.0, 0.0])
    """

    __slots__ = ("_counts", "_memory", "_row_of", "_rows", "_sum")

    def __init__(self, memory: Arrays, name: str) -> None:
        self._memory = memory
        self._rows, self._row_of, self._sum = f"{name}/rows", f"{name}/row_of", f"{name}/sum"
        self._counts = memory[f"{name}/counts"]  # clients, rows in use, changes since the sum was computed anew

    @staticmethod
    def init(name: str, like: np.ndarray, num_clients: int) -> Arrays:
        """The arrays of a table without rows.

        Args:
            name: what their names begin with.
            like: a vector of the size and dtype of those to come.
            num_clients: n, as far as it is known; a client with a higher number adds 1 to it when it first comes.
        """
        return {
            f"{name}/rows": np.zeros((0, like.size), like.dtype),
            f"{name}/row_of": np.full(num_clients, NO_ROW, np.int64),
            f"{name}/sum": np.zeros(like.size),
            f"{name}/counts": np.array([num_clients, 0, 0]),
        }

    @property
    def num_clients(self) -> int:
        """n, all clients, those without a row included."""
        return int(self._counts[0])

    def sum(self) -> np.ndarray:
        """The sum of all rows, in float64; not to be changed."""
        return self._memory[self._sum]

    def mean(self) -> np.ndarray:
        """The mean over all n clients, a new array of float64."""
        return self.sum() / self.num_clients

    @property
    def num_rows(self) -> int:
        """How many clients have a row."""
        return int(self._counts[1])

    def mean_of_rows(self) -> np.ndarray:
        """The mean over the clients that have a row, a new array of float64; 0 if none has."""
        return self.sum() / self.num_rows if self.num_rows else np.zeros_like(self.sum())

    def has_row(self, client: int) -> bool:
        """Whether a vector was put for this client, and not forgotten."""
        row_of = self._memory[self._row_of]
        return client < row_of.size and bool(row_of[client] >= 0)

    def row(self, client: int) -> np.ndarray:
        """The client's vector, 0 if it has none. It is part of the table: copy it before the next put."""
        rows, row_of = self._memory[self._rows], self._memory[self._row_of]
        row = row_of[client] if client < row_of.size else UNKNOWN
        return rows[row] if row >= 0 else np.zeros(rows.shape[1], rows.dtype)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The clients that have a row, in order of number, and their vectors, a new array (m, p)."""
        row_of = self._memory[self._row_of]
        clients = np.flatnonzero(row_of >= 0)
        return clients, self._memory[self._rows][row_of[clients]]

    def put(self, client: int, vector: np.ndarray) -> None:
        """This is the client's vector from now on; it is copied."""
        stored, total = self._own_row(client), self.sum()
        total -= stored
        stored[:] = vector
        total += stored
        self._count_change()

    def forget(self, client: int) -> None:
        """The client's vector is 0 again, and its row free for others; it still counts as one of n."""
        rows, row_of = self._memory[self._rows], self._memory[self._row_of]
        if client >= row_of.size or row_of[client] < 0:
            return
        self.put(client, np.zeros(rows.shape[1], rows.dtype))
        row, last = row_of[client], self._counts[1] - 1
        rows[row], rows[last] = rows[last], 0.0
        row_of[row_of == last], row_of[client], self._counts[1] = row, NO_ROW, last

    def _count_change(self) -> None:
        self._counts[2] += 1
        if self._counts[2] >= self._counts[1]:
            self.sum()[:] = self._memory[self._rows][: self._counts[1]].sum(axis=0, dtype=np.float64)
            self._counts[2] = 0

    def _own_row(self, client: int) -> np.ndarray:
        """The client's row, which is made if there is none."""
        row_of, used = self._memory[self._row_of], int(self._counts[1])
        if client >= row_of.size:
            row_of = np.pad(row_of, (0, max(client + 1 - row_of.size, row_of.size)), constant_values=UNKNOWN)
            self._memory[self._row_of] = row_of
        if row_of[client] < 0:
            if used == len(self._memory[self._rows]):
                self._memory[self._rows] = np.pad(self._memory[self._rows], ((0, max(4, used)), (0, 0)))
            self._counts[0] += row_of[client] == UNKNOWN
            self._counts[1], row_of[client] = used + 1, used
        own: np.ndarray = self._memory[self._rows][row_of[client]]
        return own
