"""PerEpoch: delays measured for one amount of local work, carried over to others in proportion."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, replace
from asyncfed.core.types import Work
from asyncfed.delays.delay_protocols import DelayDescription, DelayModel, LimitsBandwidth, Timing
from asyncfed.delays.work_amount import count_passes
from asyncfed.registry import register


@register("delays")
class PerEpoch(Config, tag_field="kind", tag="per_epoch"):
    """Other delays, which are those of tickets with so many local epochs; a ticket with more computes for longer.

        compute = compute of `delays` * passes over the client's data / epochs

    Most delays say how long a ticket takes without asking how much is trained in it: seconds that were measured, or a
    distribution. With those alone, twice the local epochs would cost nothing. Down- and uploads are left as they are.

    Args:
        delays: how long a ticket of `epochs` local epochs takes.
        epochs: the local epochs that `delays` are for, 1 or more.

    >>> from asyncfed.delays import Delays
    >>> model = PerEpoch(delays=Delays(), epochs=2).bind(num_clients=3, seed=0)
    >>> [model.timing(0, 0, Work(epochs=epochs), 100).compute for epochs in (1, 2, 6)]
    [0.5, 1.0, 3.0]
    """

    delays: DelayDescription
    epochs: int = 1

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError(f"delays.epochs is {self.epochs}; it must be at least 1 local epoch.")

    @property
    def may_lose(self) -> bool:
        """Whether the inner delays lose tickets."""
        return self.delays.may_lose

    def bind(self, num_clients: int, seed: int) -> BoundPerEpoch:
        """The delay model of a run with these clients and this seed."""
        return BoundPerEpoch(self.delays.bind(num_clients, seed), self.epochs)


class BoundPerEpoch:
    """`PerEpoch` of one run.

    Args:
        model: the delay model of tickets with `epochs` local epochs.
        epochs: the local epochs that it is for.
    """

    def __init__(self, model: DelayModel, epochs: int) -> None:
        self._model = model
        self._epochs = epochs
        self._limits = model if isinstance(model, LimitsBandwidth) else None
        self._work: Work | None = None
        self._measured = Work()

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The inner model's timing, with computing in proportion to the passes over the client's data."""
        if work is not self._work:  # nearly all tickets of a run have the same work
            self._work, self._measured = work, replace(work, epochs=self._epochs, steps=UNSET)
        timing = self._model.timing(client, ticket, self._measured, num_examples)
        share = count_passes(work, num_examples) / self._epochs
        if share == 1.0:
            return timing
        return Timing(timing.download, timing.compute * share, timing.upload, timing.lost)

    @property
    def limits_bandwidth(self) -> bool:
        """Whether the inner model limits bandwidth."""
        return self._limits is not None and self._limits.limits_bandwidth

    def transfer_seconds(self, client: int, bytes_down: int, bytes_up: int) -> tuple[float, float]:
        """The inner model's."""
        return (0.0, 0.0) if self._limits is None else self._limits.transfer_seconds(client, bytes_down, bytes_up)

    def watts(self, client: int) -> float:
        """The inner model's."""
        return self._model.watts(client)

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """The inner model's."""
        return self._model.finish_compute(client, start, seconds)

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The inner model's."""
        return self._model.lost_after(client, ticket, timing)
