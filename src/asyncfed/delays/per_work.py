"""PerWork: delays measured for one amount of local work, carried over to others in proportion."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType, replace
from asyncfed.core.types import Work
from asyncfed.delays.delay_protocols import DelayDescription, DelayModel, LimitsBandwidth, Timing
from asyncfed.delays.work_amount import count_passes
from asyncfed.registry import register


@register("delays")
class PerWork(Config, tag_field="kind", tag="per_work"):
    """Other delays, which are those of tickets with so much local work; a ticket with more computes for longer.

        compute = compute of `delays` * passes over the client's data / epochs
        compute = compute of `delays` * mini-batch steps / steps                    if `steps` is set

    Most delays say how long a ticket takes without asking how much is trained in it: seconds that were measured, or a
    distribution. With those alone, twice the local epochs would cost nothing. Down- and uploads are left as they are.

    Args:
        delays: how long a ticket with `epochs` local epochs, or `steps` mini-batch steps, takes.
        epochs: the local epochs that `delays` are for, 1 or more.
        steps: the mini-batch steps that `delays` are for, 1 or more, in place of epochs.

    >>> from asyncfed.delays import Delays
    >>> model = PerWork(delays=Delays(), epochs=2).bind(num_clients=3, seed=0)
    >>> [model.timing(0, 0, Work(epochs=epochs), 100).compute for epochs in (1, 2, 6)]
    [0.5, 1.0, 3.0]
    """

    delays: DelayDescription
    epochs: int = 1
    steps: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError(f"delays.epochs is {self.epochs}; it must be at least 1 local epoch.")
        if self.steps is not UNSET and self.steps < 1:
            raise ConfigError(f"delays.steps is {self.steps}; it must be at least 1 mini-batch step, or left out.")

    @property
    def may_lose(self) -> bool:
        """Whether the inner delays lose tickets."""
        return self.delays.may_lose

    def bind(self, num_clients: int, seed: int) -> BoundPerWork:
        """The delay model of a run with these clients and this seed."""
        return BoundPerWork(self.delays.bind(num_clients, seed), self.epochs, self.steps)


class BoundPerWork:
    """`PerWork` of one run.

    Args:
        model: the delay model of tickets with so much local work.
        epochs: the local epochs that it is for.
        steps: the mini-batch steps that it is for, in place of epochs; UNSET if it is for epochs.
    """

    def __init__(self, model: DelayModel, epochs: int, steps: int | UnsetType = UNSET) -> None:
        self._model = model
        self._epochs = epochs
        self._steps = steps
        self._limits = model if isinstance(model, LimitsBandwidth) else None
        self._work: Work | None = None
        self._measured = Work()

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The inner model's timing, with computing in proportion to the work."""
        if work is not self._work:  # nearly all tickets of a run have the same work
            # Epochs even for steps: what the inner delays make of steps is for their own reading of them.
            self._work, self._measured = work, replace(work, epochs=self._epochs, steps=UNSET)
        timing = self._model.timing(client, ticket, self._measured, num_examples)
        if self._steps is UNSET:
            share = count_passes(work, num_examples) / self._epochs
        else:
            share = work.count_steps(num_examples) / self._steps
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
