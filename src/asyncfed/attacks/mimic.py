"""Mimic: all liars send what one client would honestly send.

Sends: the honest change that one client would make from the model the liar was sent.
Equation: lie = change of client `target` from the same model.
Knows: the data of all liars, one of whom is mimicked; a real coalition can do this. With knowledge "all" an honest
client is mimicked, as in the paper, which needs that client's data: a simulation can do it, a real liar only if it
listens in.
Paper: Karimireddy, He & Jaggi, "Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing", ICLR 2022.
Aims at: every rule, where clients' data differ: each lie is an honest change, so nothing can be filtered, but one
client counts for many, and medians and Krum leave the others out.
"""

from __future__ import annotations

from typing import Literal

from asyncfed.attacks.protocol import Knowledge, LiarView, Lying
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class Mimic(Lying, Config, tag_field="kind", tag="mimic"):
    """Sends what one client would honestly send from the same model.

        lie = change of `target`

    Args:
        target: the number of the client that is mimicked; left out, the first liar, or the first honest client if
            everybody's data are known.
        knowledge: "coalition": the target is one of the liars; "all": it may be anybody, which can be simulated only.

    >>> Mimic(target=-1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.target is -1; clients are numbered from 0.
    """

    target: int | UnsetType = UNSET
    knowledge: Literal["coalition", "all"] = "coalition"

    def __post_init__(self) -> None:
        if self.target is not UNSET and self.target < 0:
            raise ConfigError(f"attack.target is {self.target}; clients are numbered from 0.")

    @property
    def knows(self) -> Knowledge:
        """As `knowledge` says."""
        return self.knowledge

    def check_liars(self, liars: tuple[int, ...], num_clients: int) -> None:
        """Refuse a target whose data the liars do not have."""
        known = range(num_clients) if self.knowledge == "all" else liars
        if self.target is not UNSET and self.target not in known:
            whose = f"one of {num_clients} clients" if self.knowledge == "all" else f"one of the liars {liars}"
            raise ConfigError(f"attack.target is {self.target}, which is not {whose}. Name one, or leave it out.")

    def lie(self, view: LiarView) -> Array:
        """The target's change."""
        target = self.target
        if target is UNSET:
            honest = (client for client in range(view.num_clients) if client not in view.liars)
            target = view.liars[0] if self.knowledge == "coalition" else next(honest)
        lie: Array = view.honest_changes(view.start, (target,), view.work)[0]
        return lie
