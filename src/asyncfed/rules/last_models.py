"""LastModels: the mean of the last K models that arrived, whoever sent them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.protocol import Arrays, Arrival, Rule


@register("rule")
class LastModels(Rule, Config, tag_field="kind", tag="last_models"):
    """A queue of the last K models: each arrival takes the place of the oldest, and the model is the mean of all.

        queue <- (queue without its oldest, w_i);     x <- (1/K) sum of the queue

    The queue begins with K times the first model. What a merge's weights say does not matter. The mean is computed from
    the queue anew each time, so that rounding does not build up; it costs K passes over the parameters.

    Args:
        queue_size: K, 1 or more.

    >>> LastModels(queue_size=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.queue_size is 0; the queue holds at least 1 model.
    """

    queue_size: int = 5

    def __post_init__(self) -> None:
        if self.queue_size < 1:
            raise ConfigError(f"rule.queue_size is {self.queue_size}; the queue holds at least 1 model.")

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The first model, K times; and the place of the oldest."""
        return {"queue": np.tile(params, (self.queue_size, 1)), "oldest": np.zeros((), np.int64)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """Each arrival in the place of the oldest; then the mean."""
        queue, oldest = memory["queue"], int(memory["oldest"])
        for arrival in arrivals:
            queue[oldest] = arrival.model
            oldest = (oldest + 1) % self.queue_size
        mean = queue.mean(axis=0, dtype=np.float64).astype(params.dtype)
        return mean, {"queue": queue, "oldest": np.array(oldest, np.int64)}, {}
