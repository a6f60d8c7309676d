"""SendIf: a client sends when its change is large enough, and else keeps it for the next time."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Uplink
from asyncfed.registry import register
from asyncfed.uplinks.chain import Arrays, check_memoryless
from asyncfed.uplinks.norms import l2_norm
from asyncfed.uplinks.whole import Whole


@register("uplink")
class SendIf(Config, tag_field="kind", tag="send_if"):
    """Event-triggered sending: a client sends only what is long enough, and keeps the rest in a residual e.

        p = e + change;   |p| > limit:  send C(p), e = p - C(p);   else:  send nothing, e = p

    | measure | limit |
    |---|---|
    | "absolute" | threshold |
    | "relative" | threshold * abs(start), the length of the model that the training began with |
    | "adaptive" | threshold * m, a running mean of the lengths of its changes: m <- m + rate (abs(change) - m) |

    A client that sends nothing says so in a byte. Its ticket is skipped: nothing is merged, its slot is free, and what
    it learnt is in its residual, so that all that was sent, plus e, is the sum of all changes. With "adaptive", m is of
    the changes before; the first is always sent. While changes point the same way, a threshold of 2 sends about every
    third one; once they point anywhere, fewer.

    Args:
        codec: C, an uplink without a memory of its own.
        threshold: of the limit, 0 or more; 0 sends every change that is not zero.
        measure: "absolute", "relative" or "adaptive".
        rate: of the running mean, above 0 and at most 1.
        at_most: how many tickets in a row a client may skip, 1 or more; None for any number.

    >>> uplink = SendIf(threshold=1.0, measure="absolute")
    >>> message, memory = uplink.encode(uplink.init(2, np.dtype(float)), np.array([0.6, 0.0]), 0, np.zeros(2))
    >>> message, memory["residual"]
    (None, array([0.6, 0. ]))
    >>> message, memory = uplink.encode(memory, np.array([0.6, 0.0]), 1, np.zeros(2))
    >>> uplink.decode(message, 2, np.dtype(float)), memory["residual"]
    (array([1.2, 0. ]), array([0., 0.]))

    Sending on events: Heemels, Johansson & Tabuada, "An introduction to event-triggered and self-triggered control",
    CDC 2012; skipping of small gradients: Chen et al., "LAG: Lazily Aggregated Gradient", NeurIPS 2018.
    """

    codec: Uplink = Whole()
    threshold: float = 2.0
    measure: Literal["absolute", "relative", "adaptive"] = "adaptive"
    rate: float = 0.1
    at_most: int | None = None
    remembers = True
    needs_start = True

    def __post_init__(self) -> None:
        check_memoryless("uplink.codec", self.codec)
        if not (isfinite(self.threshold) and self.threshold >= 0):
            raise ConfigError(f"uplink.threshold is {self.threshold}; it must be zero or a positive number.")
        if not 0 < self.rate <= 1:
            raise ConfigError(f"uplink.rate is {self.rate}; it must be above 0 and at most 1.")
        if self.at_most is not None and self.at_most < 1:
            raise ConfigError(
                f"uplink.at_most is {self.at_most}; a client must be allowed to skip at least 1 ticket. Leave it out "
                "for any number."
            )

    def init(self, num_params: int, dtype: np.dtype[Any]) -> Arrays:
        """A residual of zero, no length of a change known (-1), nothing skipped."""
        return {"residual": np.zeros(num_params, dtype), "mean_norm": np.array([-1.0]), "in_a_row": np.array([0])}

    def size(self, num_params: int, itemsize: int) -> None:
        """None: whether something is sent is known only after training."""

    def limit(self, mean_norm: float, start: np.ndarray) -> float:
        """How long what is sent must be at least; below 0 if anything is sent."""
        if self.measure == "absolute":
            return self.threshold
        return self.threshold * l2_norm(start) if self.measure == "relative" else self.threshold * mean_norm

    def encode(self, memory: Arrays, change: np.ndarray, key: int, start: np.ndarray) -> tuple[Arrays | None, Arrays]:
        """The codec's message of residual and change, if they are long enough; what is not sent is the new residual."""
        wanted, mean, skipped = memory["residual"] + change, float(memory["mean_norm"][0]), int(memory["in_a_row"][0])
        norm = l2_norm(change)
        after = {"mean_norm": np.array([norm if mean < 0 else mean + self.rate * (norm - mean)])}
        # What is not finite is sent, so that the checks which all updates pass find it.
        is_short = l2_norm(wanted) <= self.limit(mean, start)
        message = None
        if not is_short or (self.at_most is not None and skipped >= self.at_most):
            message, _ = self.codec.encode({}, wanted, key)
        if message is None:
            return None, {**after, "residual": wanted, "in_a_row": np.array([skipped + 1])}
        with np.errstate(invalid="ignore"):
            left = wanted - self.codec.decode(message, wanted.size, wanted.dtype)
        return message, {**after, "residual": left, "in_a_row": np.array([0])}

    def decode(self, message: Arrays, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
        """The codec's."""
        change: np.ndarray = self.codec.decode(message, num_params, dtype)
        return change
