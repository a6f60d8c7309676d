"""Slow poison: liars are honest while they are quick, and lie in reports that they hold back.

Sends: in a share of its tickets what another attack sends, `factor` times as late; in all others the honest change.
Equation: lie = that of `attack` in tickets drawn by their key with probability `share`, the change otherwise.
Knows: what the other attack knows; a real client can wait. Which tickets are held back it draws for itself.
Paper: Damaskinos, El Mhamdi, Guerraoui, Patra & Taziki, "Asynchronous Byzantine Machine Learning (the case of SGD)",
ICML 2018, describes liars that use staleness; Xie, Koyejo & Gupta, "Zeno++: Robust Fully Asynchronous SGD", ICML
2020.
Aims at: reputations and filters that learn what a client usually sends, and rules that excuse strange changes because
they are stale. A bound on staleness and a discount are what it has to fear.
"""

from __future__ import annotations

from asyncfed.attacks.protocol import Attack, Knowledge, LiarView, Lying, Targets
from asyncfed.attacks.settings import require_share
from asyncfed.attacks.sign_flip import SignFlip
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import purpose_key, unit
from asyncfed.core.record import Config
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class SlowPoison(Lying, Config, tag_field="kind", tag="slow_poison"):
    """Lies as another attack does, in a share of its tickets only, and reports those late.

        lie = lie of `attack` with probability `share`, `factor` times as late;    else the honest change, in time

    Args:
        attack: what is sent in those tickets.
        share: the share of a liar's tickets in which it lies, above 0 and at most 1.
        factor: how many times as long these tickets compute, 1 or more and finite.

    >>> SlowPoison(factor=0.5)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.factor is 0.5; it must be 1 or more: reports can be held back only.
    """

    attack: Attack = SignFlip(scale=10.0)
    share: float = 0.3
    factor: float = 10.0

    def __post_init__(self) -> None:
        require_share("attack.share", self.share)
        if not 1 <= self.factor < float("inf"):
            raise ConfigError(f"attack.factor is {self.factor}; it must be 1 or more: reports can be held back only.")

    @property
    def knows(self) -> Knowledge:
        """What the other attack knows."""
        return self.attack.knows

    @property
    def least_liars(self) -> int:
        """As many as the other attack needs."""
        return self.attack.least_liars

    @property
    def poisons_rows(self) -> bool:
        """Whether the other attack does."""
        return self.attack.poisons_rows

    @property
    def measures(self) -> str:
        """What the other attack measures."""
        return self.attack.measures

    def check(self, targets: Targets | None) -> None:
        """As the other attack."""
        self.attack.check(targets)

    def check_liars(self, liars: tuple[int, ...], num_clients: int) -> None:
        """As the other attack."""
        self.attack.check_liars(liars, num_clients)

    def lies(self, key: int) -> bool:
        """In a share of the tickets, drawn by the key of the training."""
        return unit(purpose_key(key, "held back")) < self.share and self.attack.lies(key)

    def delay_factor(self, key: int) -> float:
        """`factor` for tickets in which it lies, times what the other attack holds them back."""
        return self.factor * self.attack.delay_factor(key) if self.lies(key) else 1.0

    def lie(self, view: LiarView) -> Array:
        """That of the other attack."""
        return self.attack.lie(view)

    def poison(self, x: Array, y: Array, targets: Targets, key: int) -> tuple[Array, Array]:
        """As the other attack does."""
        return self.attack.poison(x, y, targets, key)

    def trigger(self, x: Array, y: Array, targets: Targets) -> tuple[Array, Array]:
        """As the other attack does."""
        return self.attack.trigger(x, y, targets)
