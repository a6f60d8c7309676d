"""Rows that are kept out of training, drawn inside each client: for validation and for testing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data.clients import Clients, rows_sha256
from asyncfed.data.random_streams import keyed

Part: TypeAlias = Literal["validation", "test"]
TRAINING, VALIDATION, TEST = range(3)
ROLES: dict[Part, int] = {"validation": VALIDATION, "test": TEST}


class Holdout(Config):
    """The fractions of each client's rows that are not trained on.

    A client of n rows keeps back `round(test · n)` of them for testing and `round(validation · n)` for validation,
    fewer if else it had no row left to train on. Which ones is drawn from the experiment's seed.

    Args:
        validation: the fraction to choose a model by, 0 or more.
        test: the fraction to judge a model by, 0 or more; both together above 0 and below 1.

    >>> Holdout(validation=0.1, test=0.2).sizes(np.array([100, 1]))
    (array([10,  0]), array([20,  0]))
    """

    validation: float = 0.15
    test: float = 0.15

    def __post_init__(self) -> None:
        for name in ("validation", "test"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"holdout.{name} is {getattr(self, name)}; it must be 0 or more, and below 1.")
        if not 0 < self.validation + self.test < 1:
            raise ConfigError(
                f"holdout keeps back {self.validation + self.test:g} of all rows; it must be above 0 and below 1. "
                "Leave [holdout] out to train on everything."
            )

    def sizes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(validation, test) rows of clients with so many rows, one row at least being left to each."""
        test = np.minimum(np.rint(self.test * rows), rows - 1).astype(np.int64)
        validation = np.minimum(np.rint(self.validation * rows), rows - 1 - test).astype(np.int64)
        return validation, test

    def roles(self, offsets: np.ndarray, seed: int) -> np.ndarray:
        """TRAINING, VALIDATION or TEST for each row of clients that own `offsets[c]` up to `offsets[c + 1]`.

        >>> np.bincount(Holdout(validation=0.2, test=0.3).roles(np.array([0, 10, 11]), seed=0)).tolist()
        [6, 2, 3]
        """
        sizes = np.diff(offsets)
        validation, test = self.sizes(sizes)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        shuffled = np.lexsort((keyed(seed, "data.holdout").random(len(owner)), owner))
        place = np.arange(len(owner)) - np.repeat(offsets[:-1], sizes)
        roles = np.full(len(owner), TRAINING, np.int8)
        roles[shuffled[place < np.repeat(test + validation, sizes)]] = VALIDATION
        roles[shuffled[place < np.repeat(test, sizes)]] = TEST
        return roles


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of one part, client after client like `Clients`, except that a small client may have none.

    Args:
        x: features, shape (rows, features), sparse if those of the clients are.
        y: targets, shape (rows,).
        offsets: client c has rows `offsets[c]` up to `offsets[c + 1]`, shape (clients + 1,).
    """

    x: Any
    y: np.ndarray
    offsets: np.ndarray

    def sha256(self) -> str:
        """The fingerprint of the rows and their owners."""
        return rows_sha256(self.x, self.y, self.offsets, "held out")


def hold_out(clients: Clients, roles: np.ndarray) -> tuple[Clients, dict[Part, HeldOut]]:
    """The clients with what is left to train on, and what was kept back, by the role of each row (`Holdout.roles`)."""
    x, y, offsets = _part(clients, roles == TRAINING)
    train = Clients(x, y, offsets, clients.labels, clients.names)
    parts = {part: HeldOut(*_part(clients, roles == role)) for part, role in ROLES.items() if (roles == role).any()}
    return train, parts


def _part(clients: Clients, chosen: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    before = np.concatenate(([0], np.cumsum(chosen)))
    return clients.x[chosen], clients.y[chosen], before[clients.offsets].astype(np.int64)
