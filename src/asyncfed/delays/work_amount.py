"""How much of a client's data a work goes through, and what part of it was done when a training ended early."""

from __future__ import annotations

from asyncfed.core.errors import DelayError
from asyncfed.core.record import UNSET
from asyncfed.core.types import Work


def count_passes(work: Work, num_examples: int) -> float:
    """Passes over the client's data: `epochs`, or for work with `steps`

        passes = steps / ceil(num_examples / batch_size)

    so that a step counts as the same part of a pass whether its batch is full or the short one at the end of an epoch.

    Args:
        work: what the client is asked to do.
        num_examples: the client's rows, 0 or more; a client without rows makes no steps, which is 0 passes.

    Returns:
        The passes, whole or not.

    >>> count_passes(Work(epochs=3), num_examples=100), count_passes(Work(steps=6, batch_size=32), num_examples=100)
    (3, 1.5)
    """
    if work.steps is UNSET:
        return work.epochs
    if num_examples <= 0:
        return 0.0
    return work.steps / -(-num_examples // work.batch_size)


def completed_fraction(work: Work, num_examples: int, steps_done: int) -> float:
    """What part of the work was done: `steps_done / work.count_steps(num_examples)`.

    Seconds of computing are those of the whole work; multiplied by this they are those of a training that `patience`
    ended early.

    Args:
        work: what the client was asked to do.
        num_examples: the client's rows, 0 or more.
        steps_done: the mini-batch steps that it made, from 0 to `work.count_steps(num_examples)`.

    Returns:
        A number from 0 to 1; 1 where no step was asked for.

    Raises:
        DelayError: more steps were made than asked for, or fewer than 0.

    >>> completed_fraction(Work(epochs=10, batch_size=50, patience=2), num_examples=100, steps_done=8)
    0.4
    """
    asked = work.count_steps(num_examples)
    if not 0 <= steps_done <= asked:
        raise DelayError(
            f"a client with {num_examples} rows made {steps_done} steps of a work of {asked}; they must be from 0 to "
            f"{asked}. Correct the steps_done of the problem, not the delays."
        )
    return steps_done / asked if asked else 1.0
