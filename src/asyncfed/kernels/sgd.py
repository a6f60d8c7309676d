"""Local mini-batch SGD on a linear model: many independent trainings in one call.

The params are p = (w_1 … w_d), then the bias if there is one. In local epoch e = 0, 1, … the client's rows are
reshuffled and read in batches B of `batch` rows (the last may be shorter), each of which makes the step

    p ← p − lr / (e + 1)^decay · ( mean_{i in B} ∇f_i(p) + l2 · p + prox · (p − p_start) + correction )

where the bias takes part in `l2 · p` only if `penalize_bias`, and mostly there is no correction. The losses f are those
of `kernels/losses.py`. A task that asks for so many steps makes them in as many epochs as that takes, the last of which
it does not read to its end.

The shuffle is that of `kernels/sgd_loops.py`. Every sum has one order, written in `kernels/batch_step.py`, and no
fast-math, so vector width and thread count cannot change a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError, DataError
from asyncfed.kernels.losses import LOSS_CODES
from asyncfed.kernels.packed_training import PackedTraining
from asyncfed.kernels.rows import dense_rows
from asyncfed.kernels.sgd_loops import train_and_follow_range, train_range
from asyncfed.kernels.tasks import Tasks

Array = NDArray[Any]


class LocalSgd(PackedTraining):
    """SGD on a linear model with one margin a row: see the head of this file, and `PackedTraining` for the calls."""

    plain_loop = train_range
    full_loop = train_and_follow_range

    def __init__(
        self,
        x: Array,
        y: Array,
        offsets: Array,
        loss_code: int,
        l2: float,
        penalize_bias: bool,
        fit_bias: bool,
        hinge_width: float = 1.0,
    ) -> None:
        if loss_code not in LOSS_CODES.values():
            raise ConfigError(f"loss_code is {loss_code}; the codes of the losses are {LOSS_CODES}.")
        model = (loss_code, float(l2), bool(penalize_bias), bool(fit_bias), float(hinge_width))
        super().__init__(dense_rows(x, y, offsets), model, 1, fit_bias)


def train_many(
    x: Array,
    y: Array,
    offsets: Array,
    clients: Array,
    start: Array,
    keys: Array,
    epochs: Array,
    batch: Array,
    lr: Array,
    decay: Array,
    prox: Array,
    loss_code: int,
    l2: float,
    penalize_bias: bool,
    fit_bias: bool,
    threads: int = 1,
    hinge_width: float = 1.0,
) -> Array:
    """`LocalSgd.train` in one call, for data that are trained on once."""
    model = LocalSgd(x, y, offsets, loss_code, l2, penalize_bias, fit_bias, hinge_width)
    columns = [np.asarray(column, dtype=np.float64) for column in (epochs, batch, lr, decay, prox)]
    if any(column.shape != clients.shape for column in columns):
        lengths = [column.size for column in columns]
        raise DataError(f"the columns of the work have lengths {lengths}; there are {len(clients)} tasks.")
    work = np.column_stack(columns)
    return model.train(start, Tasks(clients, keys, work), threads)
