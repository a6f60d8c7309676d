"""Liars: which clients of a run lie, and how."""

from __future__ import annotations

from math import floor

from asyncfed.attacks.protocol import Attack
from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import UNSET, Config, UnsetType


class Liars(Config):
    """The clients of a run that lie, and how: the `attack` of an experiment.

    One of `share`, `count` and `clients` says who. With a share or a count, the seed decides: the liars of a smaller
    number are among those of a larger one.

    Args:
        attack: what they do.
        share: the share of the clients that lie, 0 or more and below 1, rounded to whole clients; of a share above 0 at
            least one. 0: nobody lies, for comparison.
        count: how many clients lie, 0 or more.
        clients: the clients that lie, by number.

    >>> from asyncfed.attacks import SignFlip
    >>> Liars(attack=SignFlip(scale=10.0), share=0.3).choose(num_clients=10, seed=0)
    (1, 4, 9)
    >>> Liars(attack=SignFlip(), clients=(4, 1)).choose(num_clients=10, seed=0)
    (1, 4)
    """

    attack: Attack
    share: float | UnsetType = UNSET
    count: int | UnsetType = UNSET
    clients: tuple[int, ...] | UnsetType = UNSET

    def __post_init__(self) -> None:
        given = [name for name in ("share", "count", "clients") if getattr(self, name) is not UNSET]
        if len(given) != 1:
            named = " and ".join(given) or "none"
            raise ConfigError(f"attack: of share, count and clients, one says who lies; {named} is set. Set one.")
        if self.share is not UNSET and not 0 <= self.share < 1:
            raise ConfigError(f"attack.share is {self.share}; it must be 0 or more and below 1: somebody is honest.")
        if self.count is not UNSET and self.count < 0:
            raise ConfigError(f"attack.count is {self.count}; it must be 0 or more clients.")
        if self.clients is not UNSET and len(set(self.clients)) < len(self.clients):
            raise ConfigError(f"attack.clients is {self.clients}; it names a client twice. Name each once.")

    def choose(self, num_clients: int, seed: int) -> tuple[int, ...]:
        """The clients that lie, in rising order.

        Args:
            num_clients: how many clients there are, 1 or more.
            seed: the run's.

        Raises:
            ConfigError: so many or such clients there are not, or nobody would be honest.
        """
        if self.clients is not UNSET:
            chosen = self.clients
            wrong = [client for client in chosen if not 0 <= client < num_clients]
            if wrong:
                raise ConfigError(
                    f"attack.clients names client {wrong[0]}; clients are numbered 0 to {num_clients - 1}."
                )
        else:
            order = list(range(num_clients))
            Stream(purpose_key(seed, "liars")).shuffle(order)
            chosen = tuple(order[: self._how_many(num_clients)])
        if len(chosen) >= num_clients:
            raise ConfigError(
                f"attack makes {len(chosen)} of {num_clients} clients lie; at least one must be honest. Take fewer "
                "liars, or more clients."
            )
        if 0 < len(chosen) < self.attack.least_liars:
            raise ConfigError(
                f"attack: {type(self.attack).__name__} needs at least {self.attack.least_liars} liars, and of "
                f"{num_clients} clients {len(chosen)} lies. Take more liars, or another attack."
            )
        liars = tuple(sorted(chosen))
        if liars:
            self.attack.check_liars(liars, num_clients)
        return liars

    def _how_many(self, num_clients: int) -> int:
        if self.count is not UNSET:
            return self.count
        assert self.share is not UNSET
        return max(floor(self.share * num_clients + 0.5), 1) if self.share > 0 else 0
