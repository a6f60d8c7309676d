"""The learning rate of every mini-batch step of a local training."""

from __future__ import annotations

import numpy as np

from asyncfed.core.types import Work
from asyncfed.problems.protocol import Array


def step_rates(work: Work, num_examples: int) -> Array:
    """λ_i = learning_rate / (e_i + 1)^decay, e_i being the local epoch of step i; with patience there may be fewer.

    Args:
        work: what the client is asked to do.
        num_examples: the client's rows, 0 or more.

    >>> step_rates(Work(steps=3, batch_size=5, learning_rate=0.5, decay=1.0), num_examples=10)
    array([0.5 , 0.5 , 0.25])
    """
    per_epoch = max(1, -(-num_examples // work.batch_size))
    epochs = np.arange(work.count_steps(num_examples)) // per_epoch
    rates: Array = work.learning_rate / (epochs + 1.0) ** work.decay
    return rates
