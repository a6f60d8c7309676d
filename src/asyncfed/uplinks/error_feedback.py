"""ErrorFeedback: what a codec leaves out is added to the next change."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Uplink
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, check_memoryless
from asyncfed.uplinks.top_k import TopK


@register("uplink")
class ErrorFeedback(Config, tag_field="kind", tag="error_feedback"):
    """A codec with a residual e that each client keeps:

        p = e + change;   send C(p);   e = p - C(p)

    so that the sum of all that was sent, plus e, is the sum of all changes. Until the server has accepted the message
    the client keeps the residual it had before, so a lost or refused message loses nothing. Neither does one that the
    strategy drops, unless the client's next ticket has gone out by then: that one goes on from the residual after it.

    Args:
        codec: C, an uplink without a memory of its own.

    >>> ErrorFeedback(codec=TopK(fraction=0.1)).remembers
    True

    Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; Stich, Cordonnier & Jaggi, "Sparsified SGD with
    Memory", NeurIPS 2018.
    """

    codec: Uplink = TopK()
    remembers = True

    def __post_init__(self) -> None:
        check_memoryless("uplink.codec", self.codec)

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """A residual of zero."""
        return {"residual": np.zeros(num_params, dtype)}

    def size(self, num_params: int, itemsize: int) -> int | None:
        """The codec's."""
        return self.codec.size(num_params, itemsize)

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays | None, Arrays]:
        """The codec's message of residual and change; what it leaves out is the new residual."""
        wanted = memory["residual"] + change
        message, _ = self.codec.encode({}, wanted, key)
        if message is None:
            return None, {"residual": wanted}
        return message, {"residual": wanted - self.codec.decode(message, wanted.size, wanted.dtype)}

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The codec's."""
        change: np.ndarray = self.codec.decode(message, num_params, dtype)
        return change
