"""The last few numbers of a kind, and their quantiles, as named arrays in a rule's memory."""

from __future__ import annotations

from math import ceil

import numpy as np

from asyncfed.rules.protocol import Arrays


class RecentNumbers:
    """The numbers of this name in a rule's memory. It keeps nothing itself: make one whenever it is needed.

    Args:
        memory: the rule's; its arrays are changed in place.
        name: what the names of the arrays begin with.

    >>> memory = RecentNumbers.init("norms", window=3)
    >>> recent = RecentNumbers(memory, "norms")
    >>> recent.add([5.0, 1.0, 2.0, 4.0])
    >>> recent.known().tolist(), recent.quantile(0.5)
    ([4.0, 1.0, 2.0], 2.0)
    """

    __slots__ = ("_count", "_numbers")

    def __init__(self, memory: Arrays, name: str) -> None:
        self._numbers, self._count = memory[f"{name}/numbers"], memory[f"{name}/count"]

    @staticmethod
    def init(name: str, window: int) -> Arrays:
        """The arrays before the first number.

        Args:
            name: what their names begin with.
            window: how many numbers are kept, 1 or more.
        """
        return {f"{name}/numbers": np.zeros(window), f"{name}/count": np.zeros(1, np.int64)}

    def add(self, numbers: list[float] | np.ndarray) -> None:
        """These are the last ones now, in place of the oldest."""
        for number in numbers:
            self._numbers[self._count[0] % self._numbers.size] = number
            self._count += 1

    def known(self) -> np.ndarray:
        """The numbers there are, in no order that matters."""
        return self._numbers[: int(min(self._count[0], self._numbers.size))]

    def quantile(self, share: float) -> float:
        """The quantile of those known; there must be one."""
        return quantile_of(self.known(), share)


def quantile_of(numbers: np.ndarray, share: float) -> float:
    """The smallest of the numbers that is at least as large as this share of them.

    >>> quantile_of(np.array([9.0, 1.0, 2.0, 3.0]), 0.5)
    2.0
    """
    return float(np.sort(numbers)[max(1, ceil(share * numbers.size - 1e-9)) - 1])
