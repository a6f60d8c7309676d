"""Nothing from outside is believed: what a reply has to pass before it may touch the model.

The tests here are about one reply and its ticket. Whether the ticket is known, not yet reported and the sender's own is
for the session to say, which knows what is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf, isfinite
from statistics import median
from sys import float_info

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, Record

CLOCK_SLACK = 0.05
"""Two clocks may disagree by so many seconds, and by so large a share, about how long a job took."""


class Limits(Config):
    """What a reply may be like, and how often a node may be wrong.

    The norm is that of the client's change, |trained − start|. It is refused above `largest_norm`, and above
    `times_median` times the median of the last `median_of` accepted ones, once half as many are known; a norm below
    `small_norm` is never compared with the median, for at the end of a run nearly all changes are nearly nothing.
    A node is set aside at its `faults`-th fault. A ticket not answered `ticket_seconds` after its client could begin
    with it is lost (never, if None).
    """

    largest_norm: float = 1e6
    times_median: float = 1e3
    small_norm: float = 1e-3
    median_of: int = 64
    metrics: int = 16
    metric_name: int = 64
    faults: int = 3
    ticket_seconds: float | None = 600.0

    def __post_init__(self) -> None:
        for name in ("largest_norm", "times_median", "median_of", "faults", "ticket_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"limits.{name} is {value}; it must be positive.")
        for name in ("small_norm", "metrics", "metric_name"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"limits.{name} is {getattr(self, name)}; it must be zero or positive.")


class Reply(Record):
    """What an engine was handed by a node, as it came. `client` is whom the engine knows it to be from, not a claim."""

    session: str
    ticket: int
    client: int
    params: np.ndarray
    duration: float
    num_examples: int
    metrics: Mapping[str, float] | None = None


class Expected(Record):
    """What the server knows about the ticket that a reply is for."""

    start: np.ndarray
    num_examples: int
    out_for: float


class Norms:
    """The norms of the last accepted changes, and their median."""

    def __init__(self, limits: Limits, known: list[float] | None = None) -> None:
        self._limits = limits
        self._last: deque[float] = deque(known or [], limits.median_of)
        self._added = 0
        self._median = median(self._last) if self._last else 0.0

    def add(self, norm: float) -> None:
        self._last.append(norm)
        self._added += 1
        if self._added % 8 == 0 or len(self._last) < 16:  # a median that is a few replies old serves as well
            self._median = median(self._last)

    def limit(self) -> float:
        """The largest norm that is let in at present."""
        limits = self._limits
        if 2 * len(self._last) < limits.median_of:
            return limits.largest_norm
        return min(limits.largest_norm, max(limits.small_norm, limits.times_median * self._median))

    def known(self) -> list[float]:
        return list(self._last)


def fault_in(reply: Reply, expected: Expected, limits: Limits, norms: Norms) -> str | None:
    """What is wrong with the reply, in words, or None. A sound reply's norm is noted in `norms`."""
    fault = _fault_in_metadata(reply, expected, limits) or _fault_in_shape(reply.params, expected.start)
    if fault is not None:
        return fault
    norm = norm_of_change(reply.params, expected.start)
    if not isfinite(norm):
        return "the model it sent is not finite, or too large for its norm to be"
    if norm > norms.limit():
        return f"the norm of its change is {norm:.3g}; at most {norms.limit():.3g} is let in"
    norms.add(norm)
    return None


def norm_of_change(trained: np.ndarray, start: np.ndarray) -> float:
    """|trained − start|, in double precision."""
    change = trained.astype(np.float64) - start
    return float(np.sqrt(change.dot(change)))


def _fault_in_shape(params: object, start: np.ndarray) -> str | None:
    if not isinstance(params, np.ndarray):
        return f"it sent a {type(params).__name__} where an array is due"
    if params.shape != start.shape:
        return f"the model it sent has shape {params.shape}; it must have {start.shape}"
    if params.dtype != start.dtype:
        return f"the model it sent holds {params.dtype}; it must hold {start.dtype}"
    return None


def _fault_in_metadata(reply: Reply, expected: Expected, limits: Limits) -> str | None:
    duration, examples = reply.duration, reply.num_examples
    if not _is_number(duration) or not 0.0 <= duration < inf:
        return f"it says it worked for {duration!r} s"
    if duration > expected.out_for * (1.0 + CLOCK_SLACK) + CLOCK_SLACK:
        return f"it says it worked for {duration:.3g} s on a ticket that was out for {expected.out_for:.3g} s"
    if type(examples) is not int or examples != expected.num_examples:
        return f"it says it has {str(examples)[:20]} examples; it had declared {expected.num_examples}"
    return None if reply.metrics is None else _fault_in_metrics(reply.metrics, limits)


def _fault_in_metrics(metrics: object, limits: Limits) -> str | None:
    if not isinstance(metrics, Mapping):
        return f"its metrics are a {type(metrics).__name__}; they must be numbers by name"
    if len(metrics) > limits.metrics:
        return f"it sent {len(metrics)} metrics; at most {limits.metrics} are let in"
    for name, value in metrics.items():
        if not isinstance(name, str) or len(name) > limits.metric_name:
            return f"the name of a metric is {str(name)[:20]!r}…; at most {limits.metric_name} letters are let in"
        if not _is_number(value) or not abs(value) <= float_info.max:
            return f"its metric {name!r} is {str(value)[:20]}; it must be a finite number"
    return None


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
