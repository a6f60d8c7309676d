"""Ready-made delays for common studies."""

from __future__ import annotations

from asyncfed.delays.delay_model import Delays
from asyncfed.delays.devices import Device
from asyncfed.delays.distributions import LogNormal, Pareto


def published_laptop() -> Delays:
    """A stand-in for the laptop of the published scripts, whose single timings were not recorded.

    What is known is the spread (longest minus shortest) of a round's 5 durations in their regression runs: 0.062 s on
    average, 0.46 s at most in 400 rounds. This log-normal reproduces both: 0.062 s, and 0.46 s as the average maximum
    of 400 rounds. The spread says nothing of a duration common to all clients; none is assumed.
    """
    return Delays(compute=LogNormal(median=0.0204, sigma=0.9))


def heavy_tailed(shape: float = 1.1, minimum: float = 1.0) -> Delays:
    """Computing times with a Pareto tail: `P(seconds > s) = (minimum / s)**shape`.

    Args:
        shape: above 0; the smaller, the heavier the tail. The mean is infinite when it is at most 1.
        minimum: the shortest computing time in seconds, above 0.

    Returns:
        The delays; nothing else takes time.
    """
    return Delays(compute=Pareto(minimum=minimum, shape=shape))


def stragglers(share: float = 0.2, slowness: float = 10.0) -> Delays:
    """Every client computes for 1 s, except a share of them that always takes longer.

    Args:
        share: the share of the slow clients, 0 to 1.
        slowness: the seconds that they take, above 0.

    Returns:
        The delays; nothing else takes time.
    """
    return Delays(devices=(Device(name="straggler", share=share, slowness=slowness),))
