"""EF21: client and server keep the same estimate of a client's change, and only its correction is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Uplink
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, check_memoryless
from asyncfed.uplinks.top_k import TopK


@register("uplink")
class EF21(Config, tag_field="kind", tag="ef21"):
    """An estimate g of the client's change, the same at the client and at the server; what is sent corrects it:

        c = C(change - g);   send c;   both sides: g <- g + c;   the server sees g

    Where changes settle down, c goes to zero and g to the change, whatever C leaves out. Both sides compute g from the
    same numbers in the same order, so they are equal to the bit. A message that is lost, refused or dropped moves
    neither; a client that has lost its g begins with zero, and so does the server for it. As changes are not added up,
    it belongs with strategies that keep a client's last change, such as ACE: there, with all of the change sent, it is
    that strategy itself.

    Args:
        codec: C, an uplink without a memory of its own; one with a contraction below 1.

    >>> uplink = EF21(codec=TopK(fraction=0.5))
    >>> memory = mirror = uplink.init(2, np.dtype(float))
    >>> for change in ([3.0, 1.0], [3.0, 1.0]):
    ...     message, memory = uplink.encode(memory, np.array(change), 0)
    ...     seen, mirror = uplink.decode(message, 2, np.dtype(float), mirror)
    ...     print(seen, np.array_equal(memory["state"], mirror["state"]))
    [3. 0.] True
    [3. 1.] True

    Richtarik, Sokolov & Fatkhullin, "EF21: A New, Simpler, Theoretically Better, and Practically Faster Error
    Feedback", NeurIPS 2021.
    """

    codec: Uplink = TopK()
    remembers = True
    mirrored = True

    def __post_init__(self) -> None:
        check_memoryless("uplink.codec", self.codec)

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """An estimate of zero, on either side."""
        return {"state": np.zeros(num_params, dtype)}

    def size(self, num_params: int, itemsize: int) -> int | None:
        """The codec's."""
        return self.codec.size(num_params, itemsize)

    def encode(self, memory: Arrays, change: np.ndarray, key: int) -> tuple[Arrays | None, Arrays]:
        """The codec's message of what the estimate lacks, and the estimate after it."""
        message, _ = self.codec.encode({}, change - memory["state"], key)
        if message is None:
            return None, memory
        return message, self.decode(message, change.size, change.dtype, memory)[1]

    def decode(
        self, message: Arrays, num_params: int, dtype: np.dtype[Any], memory: Arrays
    ) -> tuple[np.ndarray, Arrays]:
        """The estimate after this message: it is the change that the server sees, and what it keeps."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is found by the checks of all updates
            state = memory["state"] + self.codec.decode(message, num_params, dtype)
        return state, {"state": state}
