"""Delays of a run whose liars hold reports back."""

from __future__ import annotations

from asyncfed.attacks.liars import Liars
from asyncfed.attacks.protocol import Attack
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.delays import DelayModel, LimitsBandwidth, Timing


def hold_back(model: DelayModel, liars: Liars, num_clients: int, seed: int) -> DelayModel:
    """The delay model with the tickets held back that the attack holds back; itself, if nobody lies."""
    members = liars.choose(num_clients, seed)
    return HeldBackDelays(model, liars.attack, members, seed) if members else model


class HeldBackDelays:
    """A `DelayModel` in which a ticket of a liar computes for `delay_factor` times as long as in another model.

    Args:
        model: how long tickets really take.
        attack: says by which factor a ticket is held back.
        liars: the clients that lie.
        seed: the run's; with it, a ticket has the key it is trained with.
    """

    def __init__(self, model: DelayModel, attack: Attack, liars: tuple[int, ...], seed: int) -> None:
        self._model = model
        self._attack = attack
        self._liars = frozenset(liars)
        self._train_key = purpose_key(seed, "train")
        self._limits = model if isinstance(model, LimitsBandwidth) else None

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        """The model's timing; of a ticket that is held back with more seconds of computing."""
        timing = self._model.timing(client, ticket, work, num_examples)
        if client not in self._liars:
            return timing
        factor = self._attack.delay_factor(draw_key(self._train_key, client, ticket))
        if factor == 1.0:
            return timing
        return Timing(timing.download, timing.compute * factor, timing.upload, timing.lost)

    @property
    def limits_bandwidth(self) -> bool:
        """Whether the model limits bandwidth."""
        return self._limits is not None and self._limits.limits_bandwidth

    def transfer_seconds(self, client: int, bytes_down: int, bytes_up: int) -> tuple[float, float]:
        """The model's."""
        return (0.0, 0.0) if self._limits is None else self._limits.transfer_seconds(client, bytes_down, bytes_up)

    def watts(self, client: int) -> float:
        """The model's."""
        return self._model.watts(client)

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        """The model's."""
        return self._model.finish_compute(client, start, seconds)

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        """The model's."""
        return self._model.lost_after(client, ticket, timing)
