"""FunctionDelays: a user's own function as a delay model."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsFloat, TypeAlias

from asyncfed.core.errors import DelayError
from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.delays.delay_protocols import Timing
from asyncfed.delays.devices import CPU_WATTS

DelayFunction: TypeAlias = Callable[[int, int, Work], SupportsFloat]


class FunctionDelays(Record):
    """Seconds of computing from a function of your own; nothing is lost and all clients are always present.

    The function has no written form: an experiment that uses it cannot be saved as TOML. For delays that can, register
    a `DelayDescription` of your own.

    Args:
        function: `function(client, ticket, work)` answers with seconds, finite and 0 or more. It must answer the same
            to the same arguments, else a run cannot be repeated or resumed.
        watts: the power that every client draws while it computes, 0 or more.

    >>> model = FunctionDelays(lambda client, ticket, work: 0.5 * work.epochs).bind(num_clients=2, seed=0)
    >>> model.timing(client=0, ticket=0, work=Work(epochs=4), num_examples=10).compute
    2.0
    """

    function: DelayFunction
    watts: float = CPU_WATTS

    @property
    def may_lose(self) -> bool:
        """False: every ticket comes back."""
        return False

    def bind(self, num_clients: int, seed: int) -> BoundFunction:
        """The delay model of a run; the function gets neither the clients' number nor the seed."""
        return BoundFunction(self.function, self.watts)


class BoundFunction:
    """A user's function as a `DelayModel`.

    Args:
        function: `function(client, ticket, work)` answers with seconds.
        watts: the power that every client draws while it computes.
    """

    def __init__(self, function: DelayFunction, watts: float) -> None:
        self._function = function
        self._watts = watts

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The function's seconds as computing time."""
        answer = self._function(client, ticket, work)
        try:
            seconds = float(answer)
        except (TypeError, ValueError):
            raise DelayError(
                f"the delay function answered {answer!r} for client {client}, ticket {ticket}; it must return a "
                "number of seconds, finite and >= 0. Correct the function given to FunctionDelays."
            ) from None
        return Timing(0.0, seconds, 0.0, False)

    def watts(self, client: int) -> float:
        """The same power for every client."""
        return self._watts

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """`start + seconds`: no client is ever absent."""
        return start + seconds

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The computing time; never needed, for nothing is lost."""
        return timing.compute
