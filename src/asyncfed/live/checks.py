"""What a result has to pass before it may change the model.

The checks here are about one result and its ticket. Whether the ticket is known, not yet reported and the sender's own
is checked by the session, which knows what is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf, isfinite
from statistics import median
from sys import float_info

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config
from asyncfed.core.types import Dispatch, Work
from asyncfed.live.wire import MODEL, Arrays, Result
from asyncfed.problems.client_measurements import MEASUREMENTS, asks_for_measurements
from asyncfed.uplinks.chain import declared_size, decode_message, message_size

CLOCK_TOLERANCE = 0.05
"""Two clocks may disagree by so many seconds, and by so large a share, about how long a task took."""


class Limits(Config):
    """What a client's result may be like, and how often a client may be at fault.

    The norm that is limited is that of the client's change, |trained − start|.

    Args:
        largest_norm: A change with a larger norm is refused; positive.
        times_median: So is one whose norm exceeds this many times the median of the last accepted ones; positive,
            infinite not to compare at all. Private runs do not: whether one client's update is merged would depend on
            what others sent, which no noise covers.
        small_norm: A norm below this is never compared with the median, for at the end of a run nearly all changes are
            nearly zero; 0 or positive.
        median_of: How many accepted norms the median is taken of; the comparison begins when half as many are known;
            at least 1.
        metrics: How many metrics a result may bring; 0 or more.
        metric_name: How many letters the name of a metric may have; 0 or more.
        faults: A client is excluded from the run at its so-manieth fault; at least 1.
        ticket_seconds: A ticket not answered so many seconds after its client could begin with it is lost, beside the
            time that the model takes on its way; positive, or None to wait for ever.
        least_bandwidth: Bytes a second that a client's connection carries at least; positive. A ticket has the time
            to send the model down and its result up at this rate on top of `ticket_seconds`: by default a model of
            100 MB has another 200 seconds.
    """

    largest_norm: float = 1e6
    times_median: float = 1e3
    small_norm: float = 1e-3
    median_of: int = 64
    metrics: int = 16
    metric_name: int = 64
    faults: int = 3
    ticket_seconds: float | None = 600.0
    least_bandwidth: float = 1e6

    @classmethod
    def for_targets(cls, targets: np.ndarray | None, ticket_seconds: float | None = 600.0) -> Limits:
        """Limits for a problem with these targets: a linear model of millions is itself made of millions.

        Args:
            targets: what is predicted, in the unit of the model; None if that is not known.
            ticket_seconds: as above.

        Returns:
            The limits; `largest_norm` is 1,000 times the largest target, where that is above its default.

        >>> Limits.for_targets(np.array([-5e6, 2.0])).largest_norm
        5000000000.0
        """
        largest = 0.0 if targets is None or not len(targets) else float(np.abs(targets).max())
        return cls(largest_norm=max(cls().largest_norm, 1e3 * largest), ticket_seconds=ticket_seconds)

    def allowed_seconds(self, model_bytes: int) -> float | None:
        """How long a client may take over a ticket with a model of this size; None if for ever.

        >>> Limits(ticket_seconds=600.0).allowed_seconds(100_000_000)
        800.0
        """
        return None if self.ticket_seconds is None else self.ticket_seconds + 2 * model_bytes / self.least_bandwidth

    def __post_init__(self) -> None:
        for name in ("largest_norm", "times_median", "median_of", "faults", "ticket_seconds", "least_bandwidth"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"limits.{name} is {value}; it must be positive.")
        for name in ("small_norm", "metrics", "metric_name"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"limits.{name} is {getattr(self, name)}; it must be zero or positive.")


class RecentNorms:
    """The norms of the last accepted changes, and the limit that follows from their median."""

    def __init__(self, limits: Limits, recorded: list[float] | None = None) -> None:
        self._limits = limits
        self._last: deque[float] = deque(recorded or [], limits.median_of)
        self._added = 0
        self._median = median(self._last) if self._last else 0.0

    def add(self, norm: float) -> None:
        """Record the norm of an accepted change, if it is to be compared with others."""
        if self._limits.times_median == inf:
            return
        self._last.append(norm)
        self._added += 1
        if self._added % 8 == 0 or len(self._last) < 16:  # a median that is a few results old is accurate enough
            self._median = median(self._last)

    def limit(self) -> float:
        """The largest norm that is accepted at present."""
        limits = self._limits
        if 2 * len(self._last) < limits.median_of:
            return limits.largest_norm
        return min(limits.largest_norm, max(limits.small_norm, limits.times_median * self._median))

    def to_list(self) -> list[float]:
        """The recorded norms, oldest first, for a checkpoint."""
        return list(self._last)


LONGEST_MESSAGE = 2
"""A message whose size is known only after training may be so many times as long as the model, and 4 KiB longer."""


def max_message_bytes(work: Work, num_params: int, itemsize: int) -> int:
    """How long the body of a result may be: the model, or what the uplinks declare."""
    if work.uplink is UNSET:
        return num_params * itemsize
    declared = declared_size(work.uplink, num_params, itemsize)
    return LONGEST_MESSAGE * num_params * itemsize + 4096 if declared is None else declared


def find_fault(
    dispatch: Dispatch,
    result: Result,
    limits: Limits,
    num_examples: int,
    seconds_out: float,
) -> str | None:
    """What is wrong with what a result says, in words, or None.

    Args:
        dispatch: its ticket.
        result: what the client says.
        limits: what is accepted.
        num_examples: how much data the client had declared.
        seconds_out: how long ago the ticket was dispatched.
    """
    duration, declared = result.duration, result.num_examples
    if not _is_number(duration) or not 0.0 <= duration < inf:
        return f"it says it worked for {duration!r} s"
    if duration > seconds_out * (1.0 + CLOCK_TOLERANCE) + CLOCK_TOLERANCE:
        return f"it says it worked for {duration:.3g} s on a ticket that was out for {seconds_out:.3g} s"
    if type(declared) is not int or declared != num_examples:
        return f"it says it has {str(declared)[:20]} examples; it had declared {num_examples}"
    if result.memory is not UNSET or dispatch.memory is not None:
        fault = _fault_in_memory(result.memory, dispatch.memory)
        if fault is not None:
            return fault
    if result.metrics is None and dispatch.work.patience is UNSET and not asks_for_measurements(dispatch.work):
        return None
    return _fault_in_metrics(result.metrics or {}, limits) or _fault_in_expected_metrics(
        result, dispatch.work, num_examples
    )


def read_model(
    dispatch: Dispatch, arrays: Arrays, start: np.ndarray, mirror: Arrays
) -> tuple[np.ndarray | None, Arrays]:
    """The model that a client trained, as far as the server knows: with uplinks, `start` plus its decoded message.

    None if it says that nothing was worth sending, which only uplinks do whose messages differ in size. And `mirror`,
    what the server keeps of the client's memory, after the message.

    Raises:
        ValueError: what it sent is impossible; the text says why.
    """
    uplinks = dispatch.work.uplink
    if uplinks is UNSET:
        if arrays.keys() != {MODEL}:
            raise ValueError(f"it sent {_names(arrays)} where a model is due")
        return _check_shape(arrays[MODEL], start), mirror
    declared = declared_size(uplinks, start.size, start.itemsize)
    if declared is None and not arrays:
        return None, mirror
    sent = message_size(arrays) if arrays else 0
    if declared is not None and sent != declared:
        raise ValueError(f"its message has {sent} bytes; {declared} are due")
    try:
        change, after = decode_message(uplinks, arrays, start.size, start.dtype, mirror)
    except Exception as error:  # whatever a decoder makes of bytes from outside, the server goes on
        raise ValueError(f"its message cannot be decoded: {str(error) or type(error).__name__}"[:200]) from error
    with np.errstate(over="ignore", invalid="ignore"):
        model: np.ndarray = start + change
    return model, after


def find_fault_in_change(norm: float, norms: RecentNorms) -> str | None:
    """What is wrong with how far a model is from where it started, or None; a sound norm is recorded in `norms`."""
    if not isfinite(norm):
        return "the model it sent is not finite, or so large that its norm is not"
    if norm > norms.limit():
        return f"the norm of its change is {norm:.3g}; at most {norms.limit():.3g} is accepted"
    norms.add(norm)
    return None


def _check_shape(params: object, start: np.ndarray) -> np.ndarray:
    if not isinstance(params, np.ndarray):
        raise ValueError(f"it sent a {type(params).__name__} where an array is due")
    if params.shape != start.shape:
        raise ValueError(f"the model it sent has shape {params.shape}; it must have {start.shape}")
    if params.dtype != start.dtype:
        raise ValueError(f"the model it sent holds {params.dtype}; it must hold {start.dtype}")
    return params


def _names(arrays: Arrays) -> str:
    return ", ".join(repr(name[:20]) for name in list(arrays)[:5]) or "nothing"


def _fault_in_memory(used: object, wanted: int | None) -> str | None:
    """A client uses the memory it was told to use, or says that it has lost it."""
    if wanted is None:
        return f"it says it used the memory of ticket {str(used)[:20]}; its work has none"
    if type(used) is not int or used not in (wanted, -1):
        return f"it says it used the memory of ticket {str(used)[:20]}; it must be {wanted}, or -1 if that is lost"
    return None


def _fault_in_expected_metrics(result: Result, work: Work, num_examples: int) -> str | None:
    """Rules and strategies count on these numbers: losses that are asked for, `steps` if the work may end early."""
    metrics = result.metrics or {}
    for name in MEASUREMENTS:
        if getattr(work, name) and name not in metrics:
            return f"it sent no {name}, which its work asks for"
    steps = metrics.get("steps")
    if work.patience is UNSET:
        return None if steps is None else "it says how many steps it made; its work makes all that were asked for"
    most = work.count_steps(num_examples)
    if steps is None or not (0 <= steps <= most and steps == int(steps)):
        return f"it says it made {str(steps)[:20]} steps; between 0 and {most} were asked for"
    return None


def _fault_in_metrics(metrics: object, limits: Limits) -> str | None:
    if not isinstance(metrics, Mapping):
        return f"its metrics are a {type(metrics).__name__}; they must be numbers by name"
    if len(metrics) > limits.metrics:
        return f"it sent {len(metrics)} metrics; at most {limits.metrics} are accepted"
    for name, value in metrics.items():
        if not isinstance(name, str) or len(name) > limits.metric_name:
            return f"the name of a metric is {str(name)[:20]!r}…; at most {limits.metric_name} letters are accepted"
        if not _is_number(value) or not abs(value) <= float_info.max:
            return f"its metric {name!r} is {str(value)[:20]}; it must be a finite number"
    return None


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
