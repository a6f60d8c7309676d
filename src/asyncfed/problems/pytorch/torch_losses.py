"""Losses of PyTorch problems: the mean over a batch to train with, and row by row to measure with."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.problems.pytorch.code_fingerprint import source_text

RowLoss = Callable[[Tensor, Tensor], Tensor]

FUNCTIONS: dict[str, Callable[..., Tensor]] = {
    "bce": F.binary_cross_entropy_with_logits,
    "cross_entropy": F.cross_entropy,
    "huber": F.huber_loss,
    "l1": F.l1_loss,
    "mse": F.mse_loss,
    "nll": F.nll_loss,
}
_MODULES: dict[str, type[nn.Module]] = {
    "bce": nn.BCEWithLogitsLoss,
    "cross_entropy": nn.CrossEntropyLoss,
    "huber": nn.HuberLoss,
    "l1": nn.L1Loss,
    "mse": nn.MSELoss,
    "nll": nn.NLLLoss,
}
CLASSES = frozenset({"cross_entropy", "nll"})
"""Losses whose targets are numbers of classes."""


class Loss:
    """`mean(outputs, targets)` is a batch's loss; `rows(outputs, targets)` one loss per row, if it can be had.

    `name` is that of a loss of the table above whose meaning is known, or "" for a function of the user's.
    """

    def __init__(self, given: str | Callable[..., Tensor]) -> None:
        self.text = given if isinstance(given, str) else source_text(given)
        self.name = _name_of(given)
        self._function: Callable[..., Tensor] = FUNCTIONS[given] if isinstance(given, str) else given
        self._rows: RowLoss | None = partial(FUNCTIONS[self.name], reduction="none") if self.name else None

    def adapt(self, outputs: Tensor, targets: Tensor) -> None:
        """Look at a first answer: a function of the user's may give one loss per row, which is then used as it is."""
        if self.name:
            return
        given, value = self._function, self._function(outputs, targets)
        if value.shape == ():
            return
        if value.shape != (len(outputs),):
            raise ConfigError(
                f"loss_fn gives a tensor of shape {tuple(value.shape)} for {len(outputs)} rows; it must give one "
                "number, the mean over the rows, or one number per row."
            )
        self._rows, self._function = given, lambda o, t: given(o, t).mean()

    @property
    def has_rows(self) -> bool:
        return self._rows is not None

    def mean(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self._function(outputs, targets)

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Shape (n,): where a row has several losses, their mean."""
        assert self._rows is not None
        values = self._rows(outputs, targets)
        return values if values.ndim == 1 else values.flatten(1).mean(1)


def _name_of(given: str | Callable[..., Tensor]) -> str:
    if isinstance(given, str):
        if given not in FUNCTIONS:
            raise ConfigError(f'loss_fn is "{given}", which is no loss. {did_you_mean(given, FUNCTIONS)}')
        return given
    for name, function in FUNCTIONS.items():
        if given is function or _is_default(given, _MODULES[name]):
            return name
    return ""


def _is_default(given: Any, kind: type[nn.Module]) -> bool:
    """True for a loss module of this kind with no setting changed: then it is the function of the same name."""
    return type(given) is kind and repr(given) == repr(kind()) and _settings(given) == _settings(kind())


def _settings(module: nn.Module) -> dict[str, Any]:
    return {k: v for k, v in vars(module).items() if not k.startswith("_") and not isinstance(v, Tensor)} | dict(
        module.named_buffers()
    )


def accuracy(outputs: Tensor, targets: Tensor) -> Tensor:
    """1 for each row whose largest output (along dimension 1) is its class, else 0; a mean where a row has several."""
    right = (outputs.argmax(1) == targets).to(torch.float32)
    return right if right.ndim == 1 else right.flatten(1).mean(1)
