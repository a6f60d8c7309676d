"""Assigning rows of any shape to clients by their class, where there is no table of features."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.data.partition import assign_by_dirichlet
from asyncfed.data.random_streams import keyed


def partition_by_label(
    labels: Any, num_clients: int, concentration: float = 0.5, min_size: int = 1, seed: int = 0
) -> np.ndarray:
    """The owner of each row, when the clients' shares of each class are one draw of `Dirichlet(concentration, ...)`.

    Args:
        labels: the class of each row, shape (rows,), of any number of classes.
        num_clients: how many clients there are, at least 1.
        concentration: 1e-6 to 1e6; 0.1 gives most clients few classes, 100 is all but IID.
        min_size: the least rows of a client, at least 1.
        seed: the seed of the draws, 0 or more.

    Returns:
        The owner of each row, shape (rows,).

    >>> owners = partition_by_label([0, 1, 2, 2, 1, 0], num_clients=2, seed=1)
    >>> sorted(set(owners.tolist()))
    [0, 1]
    """
    classes = np.asarray(labels)
    if classes.ndim != 1 or not len(classes):
        raise DataError(f"labels has shape {classes.shape}; it must be (rows,), with at least one row.")
    if num_clients < 1 or min_size < 1 or num_clients * min_size > len(classes):
        raise ConfigError(
            f"{len(classes)} rows cannot give {num_clients} clients {min_size} rows each; use fewer clients."
        )
    if not 1e-6 <= concentration <= 1e6:
        raise ConfigError(f"concentration is {concentration}; it must be from 1e-6 to 1e6.")
    numbers = np.unique(classes, return_inverse=True)[1]
    return assign_by_dirichlet(numbers, num_clients, concentration, min_size, keyed(seed, "split.deal"))
