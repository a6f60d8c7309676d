"""Clients' rows as tensors that a module can read.

They are always copied into torch's own memory, which begins at multiples of 64 bytes: a matrix product may round
differently where its operands lie differently, and then a run would not repeat in another process.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asyncfed.core.errors import DataError
from asyncfed.problems.protocol import Array
from asyncfed.problems.pytorch.torch_losses import CLASSES


def features(values: Array, trained: Array, kind: torch.dtype, device: torch.device) -> Tensor:
    """Int64 where those to train with are whole numbers (tokens, say); else the model's precision."""
    if trained.dtype.kind not in "iu":
        return _own(values, kind, device)
    if values.dtype.kind not in "iu":
        raise DataError(f"Rows to train with hold whole numbers, but others {values.dtype}; give whole numbers.")
    return _own(values, torch.int64, device)


def class_numbers(y: Array, device: torch.device) -> Tensor:
    """Classes 0, 1, … as int64. Labels −1 and +1, as `af.data` has them, become 0 and 1."""
    whole = np.asarray(y)
    if whole.dtype.kind == "f":
        if set(np.unique(whole).tolist()) <= {-1.0, 1.0}:
            whole = (whole > 0).astype(np.int64)
        elif not (whole == np.floor(whole)).all():
            raise DataError(f"y holds {whole[whole != np.floor(whole)].flat[0]}; this loss needs classes 0, 1, 2, …")
    if whole.min() < 0:
        raise DataError(f"y holds {whole.min()}; this loss needs classes 0, 1, 2, …")
    return _own(whole, torch.int64, device)


def targets_like(outputs: Tensor, targets: Tensor) -> Tensor:
    """Targets (n,) for outputs (1, 1) become (n, 1): torch would else compare every row with every other."""
    if targets.ndim == 1 and outputs.ndim == 2 and outputs.shape[1] == 1:
        return targets.unsqueeze(1)
    return targets


def check_targets(loss: str, outputs: Tensor, targets: Tensor, whose: str = "y") -> None:
    """Refuse targets that a loss of torch would stretch, or that name a class the module has no output for."""
    if loss in CLASSES:
        if outputs.ndim < 2 or int(targets.max()) >= outputs.shape[1]:
            raise DataError(
                f"{whose} holds class {int(targets.max())}, but the module's outputs have shape {tuple(outputs.shape)} "
                f"for {len(outputs)} rows; it needs at least {int(targets.max()) + 1} outputs a row."
            )
    elif loss and outputs.shape[1:] != targets.shape[1:]:
        raise DataError(
            f"The module gives shape {tuple(outputs.shape[1:])} for a row, but its target in {whose} has shape "
            f"{tuple(targets.shape[1:])}; both must be the same."
        )


def _own(values: Array, kind: torch.dtype, device: torch.device) -> Tensor:
    tensor = torch.empty(values.shape, dtype=kind, device=device)
    readable = np.ascontiguousarray(values)
    tensor.copy_(torch.from_numpy(readable if readable.flags.writeable else readable.copy()))
    return tensor
