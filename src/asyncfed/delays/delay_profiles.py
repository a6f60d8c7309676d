"""Delays of three places where models are really trained together: a shared cluster, hospitals, phones.

docs/delays.md says of every number whether it is known, and from where, or assumed.
"""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.delays.checks import require_positive
from asyncfed.delays.cluster_variation import ClusterVariation
from asyncfed.delays.delay_model import Delays
from asyncfed.delays.devices import Device
from asyncfed.delays.distributions import Constant, Exponential, LogNormal
from asyncfed.delays.nights import Nights
from asyncfed.delays.outages import Outages
from asyncfed.delays.variation import Sites

HOUR = 3600.0
MEGABIT = 125_000.0
"""Bytes."""

SPREAD_OF_JOBS = {0.05: 0.023, 0.25: 0.053, 0.5: 0.087, 0.75: 0.449, 0.95: 1.141}
"""Quantiles over 100 jobs of the coefficient of variation between the ten workers of a job (Alibaba PAI, 2020)."""

NOISE_OF_VARIATION = 0.4
"""A worker's noise as a part of the variation between workers; assumed, so that both keep their known limits."""

HOSPITAL_SIZES = (1.0, 0.62, 0.45, 0.34, 0.25, 0.18, 0.12)
"""How large seven hospitals are, the largest being 1; assumed."""

PHONE_ZONES = (-8.0, -6.0, -5.0, -3.0, 0.0, 1.0, 2.0, 3.0, 5.5, 7.0, 8.0, 9.0)
"""Hours from UTC, all equally likely; assumed."""


def cluster() -> Delays:
    """Workers of a shared cluster: 1 s each, times lasting factors, noise that remembers, and stragglers.

    The seconds of most clients differ by 8.7 % (coefficient of variation), as those of workers in the median job of
    Alibaba's PAI traces: 6.2 % by lasting factors, the rest by noise. A quarter of the clients is split
    as one job in four is, into a fast half at 0.45 times and a slow half at 1.5 to 2 times the median. A tenth becomes
    1.5 to 4.5 times slower in the middle of the run, and stays so. See `ClusterVariation`.

    Returns:
        The delays; nothing but computing takes time.
    """
    return Delays(variation=ClusterVariation())


def cluster_job(quantile: float) -> Delays:
    """Workers that differ as much as those of the job at that quantile of Alibaba's PAI traces; nobody straggles.

    Between the five quantiles that are known, the coefficient of variation v is interpolated in its logarithm. The
    noise of a worker is `0.4 * v`, within 0.01 to 0.5, which are the known limits; the lasting factors make up the
    rest, `1 + v**2 = (1 + spread**2) * exp(noise**2)`.

    Args:
        quantile: 0.05 to 0.95; 0.5 is the median job, whose workers differ by 8.7 %.

    Returns:
        The delays; nothing but computing takes time.
    """
    known, spreads = list(SPREAD_OF_JOBS), list(SPREAD_OF_JOBS.values())
    if not known[0] <= quantile <= known[-1]:
        raise ConfigError(f"quantile is {quantile}; what is known of the jobs is from {known[0]} to {known[-1]}.")
    variation = float(np.exp(np.interp(quantile, known, np.log(spreads))))
    noise = min(max(NOISE_OF_VARIATION * variation, 0.01), 0.5)
    spread = sqrt((1.0 + variation**2) / exp(noise**2) - 1.0)
    return Delays(
        variation=ClusterVariation(
            spread=round(spread, 6), noise=Constant(value=round(noise, 6)), split_share=0.0, straggler_share=0.0
        )
    )


def hospital(rows: float | None = None) -> Delays:
    """Seven hospitals behind a VPN: half an hour at the largest, which is the slowest; links drop, tickets are lost.

    Client c is site c % 7, and site 0 is the largest. The work of a ticket is proportional to the rows of its site.

    Args:
        rows: None: a site has `HOSPITAL_SIZES` of the largest one's rows, whatever the clients' data are. Else a client
            with so many rows computes for half an hour a local epoch, others in proportion to their own rows.

    Returns:
        The delays.
    """
    link = Delays(
        download=Constant(value=2.0),
        upload=Constant(value=2.0),
        bandwidth_down=Constant(value=10 * MEGABIT),
        bandwidth_up=Constant(value=10 * MEGABIT),
        availability=Outages(every=6 * HOUR, lasting=Exponential(mean=600.0)),
        dropout=0.03,
        timeout=HOUR,
    )
    if rows is None:
        return replace(link, compute=LogNormal(median=HOUR / 2, sigma=0.1), variation=Sites(slowness=HOSPITAL_SIZES))
    require_positive("rows", rows, "Leave it out for sites of assumed sizes.")
    return replace(link, compute=LogNormal(median=1.0, sigma=0.1), per_sample=HOUR / 2 / rows)


def phones() -> Delays:
    """Phones that train while they charge at night, by the clocks of twelve time zones; three classes, slow links.

    A ticket computes for a minute on a fast phone, two on a middling one, five on a slow one (medians), and is lost
    with a probability of 6, 8 and 10 %. At any moment about a quarter of the phones is present; see `Nights`.

    Returns:
        The delays.
    """
    return Delays(
        compute=LogNormal(median=60.0, sigma=0.4),
        download=Exponential(mean=1.0),
        upload=Exponential(mean=1.0),
        devices=(
            _phone("slow", 0.3, slowness=5.0, watts=3.0, dropout=0.10, megabits=(3.0, 1.0)),
            _phone("middle", 0.5, slowness=2.0, watts=4.0, dropout=0.08, megabits=(15.0, 5.0)),
            _phone("fast", 0.2, slowness=1.0, watts=5.0, dropout=0.06, megabits=(50.0, 20.0)),
        ),
        availability=Nights(zones=PHONE_ZONES),
        timeout=HOUR,
    )


def _phone(
    name: str, share: float, slowness: float, watts: float, dropout: float, megabits: tuple[float, float]
) -> Device:
    """A class of phones, with the speed of its links down and up."""
    down, up = megabits[0] * MEGABIT, megabits[1] * MEGABIT
    return Device(
        name=name,
        share=share,
        slowness=slowness,
        watts=watts,
        dropout=dropout,
        bandwidth_down=down,
        bandwidth_up=up,
    )
