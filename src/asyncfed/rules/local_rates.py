"""The learning rates of a client's local steps: what a rule needs to make a mean gradient of a change of the model."""

from __future__ import annotations

from asyncfed.core.types import Work


def sum_of_rates(work: Work, steps: int, num_examples: int) -> float:
    """The sum of the rates of the first so many local steps, `learning_rate / (e + 1)**decay` in local epoch e.

    With plain SGD, `(start - model) / sum_of_rates` is the mean of the gradients of the steps, each counting as much as
    its rate.

    Args:
        work: what the client was asked to do.
        steps: the mini-batch steps it made, 0 or more; the last epoch may be cut.
        num_examples: the client's samples, which say how many steps an epoch has.

    Returns:
        The sum, 0 for no steps.

    >>> sum_of_rates(Work(batch_size=4, learning_rate=0.1, decay=1.0, epochs=2), steps=4, num_examples=8)
    0.30000000000000004
    """
    if work.decay == 0 or steps == 0:
        return work.learning_rate * steps
    per_epoch = -(-num_examples // work.batch_size)
    rates, left, epoch = 0.0, steps, 0
    while left > 0:
        rates += min(left, per_epoch) * (work.learning_rate / (epoch + 1.0) ** work.decay)
        left, epoch = left - per_epoch, epoch + 1
    return rates
