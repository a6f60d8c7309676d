"""A little is enough: liars stay within the spread of honest changes, all on the same side of their mean.

Sends: the mean of the coalition's honest changes less z of their standard deviations, number by number.
Equation: lie_j = mean_j - z * std_j over the liars' honest changes from the same model; z = Phi^-1((n - f - s) / (n -
f)), s = floor(n / 2 + 1) - f, of n clients f lie; at least 0.
Knows: the data of all liars, how many clients there are; a real coalition that talks to each other can do this.
Paper: Baruch, Baruch & Goldberg, "A Little Is Enough: Circumventing Defenses For Distributed Learning", NeurIPS 2019.
There the liars' changes stand in for everybody's, as here; that is right where clients' data are alike.
Aims at: Krum, trimmed mean, median, and all that judge by distance: the lie is nearer to the mean than many honest
changes.
"""

from __future__ import annotations

from math import floor
from statistics import NormalDist
from typing import ClassVar

from asyncfed.attacks.protocol import Knowledge, LiarView, Lying
from asyncfed.attacks.settings import require_positive
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.problems.protocol import Array
from asyncfed.registry import register


@register("attack")
class LittleIsEnough(Lying, Config, tag_field="kind", tag="little_is_enough"):
    """Sends the mean of the liars' honest changes less z of their standard deviations.

        lie_j = mean_j - z * std_j

    It needs two liars, for one has no spread.

    Args:
        z: how many standard deviations, above 0; left out, as many as the paper's formula gives for so many clients and
            liars: few while liars are few (0.18 of 3 in 10), 0 if they are too few to hide.

    >>> LittleIsEnough(z=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: attack.z is 0.0; it must be a positive number.
    """

    z: float | UnsetType = UNSET
    knows: ClassVar[Knowledge] = "coalition"
    least_liars = 2

    def __post_init__(self) -> None:
        if self.z is not UNSET:
            require_positive("attack.z", self.z)

    def lie(self, view: LiarView) -> Array:
        """mean - z * std."""
        changes = view.coalition()
        z = hidden_deviations(view.num_clients, len(view.liars)) if self.z is UNSET else self.z
        lie: Array = changes.mean(axis=0) - z * changes.std(axis=0)
        return lie


def hidden_deviations(num_clients: int, num_liars: int) -> float:
    """The z of the paper: so far from the mean that enough honest clients are expected farther out to hide behind.

    Args:
        num_clients: n, those that lie included.
        num_liars: f, below n.

    >>> round(hidden_deviations(50, 12), 3), hidden_deviations(4, 1)
    (0.336, 0.0)
    """
    honest = num_clients - num_liars
    needed = floor(num_clients / 2 + 1) - num_liars
    share = (honest - needed) / honest
    if share >= 1.0:  # the liars are a majority
        share = 1.0 - 0.5 / honest
    return max(NormalDist().inv_cdf(share), 0.0) if share > 0 else 0.0
