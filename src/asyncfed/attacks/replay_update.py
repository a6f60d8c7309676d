"""Replay: liars send their first update again and again.

Sends: the change that the liar's own data bring from the run's first model, whatever model it was sent since.
Equation: lie = scale * change from the first model.
Knows: its own data and the first model, which it was sent or can make; a real client can do this, and one whose file
was restored from an old copy does.
Paper: none of its own; the replay of valid old messages is the classic attack on protocols. Here messages are fresh,
so that tickets and keys do not refuse it, and only what they hold is old.
Aims at: rules on arrival that judge by length or by direction alone: the change was honest once. It never gets
shorter, so that the model cannot settle.
"""

from __future__ import annotations

from asyncfed.attacks.protocol import LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class ReplayUpdate(Lying, Config, tag_field="kind", tag="replay"):
    """Sends the change that it made from the run's first model, in every ticket.

        lie = scale * change from the first model

    Args:
        scale: what it is multiplied by, above 0.

    >>> ReplayUpdate(scale=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.scale is 0.0; it must be a positive number.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        require_positive("attack.scale", self.scale)

    def lie(self, view: LiarView) -> Array:
        """scale * change from the first model."""
        lie: Array = self.scale * view.honest_changes(view.first, (view.client,), view.work)[0]
        return lie
