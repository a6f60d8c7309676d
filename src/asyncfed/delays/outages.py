"""Outages: links that drop now and then; work goes on, its result waits until the link is back."""

from __future__ import annotations

import numpy as np

from asyncfed.core.random import purpose_key
from asyncfed.core.record import Config
from asyncfed.delays.checks import require_positive
from asyncfed.delays.delay_protocols import Array
from asyncfed.delays.distributions import Distribution, Exponential
from asyncfed.delays.keyed_draws import keyed_unit
from asyncfed.registry import register

LATEST_SLOT = 1e12
"""Much later a float cannot tell one moment of a slot from another: there are no outages then."""

QUANTILES = 10_000
"""How many quantiles of the lengths are averaged for their mean square."""


@register("availability")
class Outages(Config, tag_field="kind", tag="outages"):
    """Each client's link drops once in every `every` seconds; what is done meanwhile is reported when it is back.

    Time is cut into slots of `every` seconds. In each slot of each client one outage begins, at a moment uniform over
    the slot, and lasts a draw of `lasting`, at most `every`. A ticket whose work ends during an outage waits for its
    end; the client's next ticket waits with it.

    Args:
        every: seconds, above 0.
        lasting: distribution of the seconds that an outage lasts.

    >>> link = Outages(every=3600.0, lasting=Exponential(mean=60.0)).bind(num_clients=1, seed=0)
    >>> ends = [link.finish(0, 100.0 * k, 50.0) - 100.0 * k for k in range(720)]  # in twenty hours
    >>> min(ends), sum(seconds > 50.0 for seconds in ends)
    (50.0, 12)
    """

    every: float = 21600.0
    lasting: Distribution = Exponential(mean=600.0)

    def __post_init__(self) -> None:
        require_positive("outages.every", self.every)

    def bind(self, num_clients: int, seed: int) -> BoundOutages:
        """The outages of the clients of a run with this seed."""
        return BoundOutages(self, seed)

    def mean_seconds(self, seconds: Array, seed: int) -> Array:
        """`seconds + E[length**2] / (2 * every)`: the mean wait of work that ends at a random moment."""
        units = (np.arange(QUANTILES) + 0.5) / QUANTILES
        lengths = np.minimum([self.lasting.draw(float(u)) for u in units], self.every)
        return seconds + float(np.mean(lengths**2)) / (2.0 * self.every)


class BoundOutages:
    """`Outages` of the clients of one run.

    Args:
        outages: the description.
        seed: the seed of the run.
    """

    def __init__(self, outages: Outages, seed: int) -> None:
        self._every = outages.every
        self._lasting = outages.lasting
        self._begin_key = purpose_key(seed, "outage begin")
        self._length_key = purpose_key(seed, "outage length")

    def finish(self, client: int, start: float, seconds: float) -> float:
        """`start + seconds`, or the end of the outage in which that lies; and so on, if it lies in the next one."""
        moment = start + seconds
        if moment > LATEST_SLOT * self._every:
            return moment
        slot = int(moment // self._every) - 1  # an outage may reach into the slot after its own, but not further
        while True:
            begin, end = self.outage(client, slot)
            if begin > moment:
                return moment
            moment = max(moment, end)
            slot += 1

    def outage(self, client: int, slot: int) -> tuple[float, float]:
        """When the outage of this slot begins and ends."""
        begin = (slot + keyed_unit(self._begin_key, client, slot)) * self._every
        length = self._lasting.draw(keyed_unit(self._length_key, client, slot))
        return begin, begin + min(length, self._every)
