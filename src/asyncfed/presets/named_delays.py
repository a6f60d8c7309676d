"""Delays by short names, and those of files."""

from __future__ import annotations

from collections.abc import Callable

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.delays import (
    DelayDescription,
    Delays,
    RecordedDurations,
    cluster,
    heavy_tailed,
    hospital,
    phones,
    published_laptop,
    read_trace,
    stragglers,
)

DELAYS: dict[str, tuple[str, Callable[[], Delays]]] = {
    "none": ("every ticket takes exactly 1 s", Delays),
    "laptop": ("like the published scripts' laptop: log-normal, milliseconds to half a second", published_laptop),
    "stragglers": ("1 s each, but a fifth of the clients takes 10 s", stragglers),
    "heavy_tailed": ("Pareto with shape 1.1: a few tickets take very long", heavy_tailed),
    "cluster": ("a shared cluster: lasting factors, correlated noise, stragglers that appear mid-run", cluster),
    "hospital": ("seven hospitals, half an hour at the largest and slowest, a VPN that drops", hospital),
    "phones": ("phones that charge at night in twelve time zones, three classes, slow links", phones),
}


def delays_named(name: str) -> DelayDescription:
    """Ready-made delays by name, or those of a file.

    Args:
        name: one of `DELAYS`; or a .csv file with the columns `client` and `seconds`, from whose rows a client's
            tickets are drawn; or the .sqlite file of a recorded run, whose durations are used again in their order.

    Returns:
        The delays.
    """
    if name in DELAYS:
        return DELAYS[name][1]()
    if name.endswith(".csv"):
        read_trace(name, purpose=0)  # complains now, not when the run begins
        return Delays(trace=name)
    if name.endswith(".sqlite"):
        recorded = RecordedDurations(file=name)
        recorded.bind(num_clients=1, seed=0)
        return recorded
    raise ConfigError(
        f'There are no delays "{name}". {did_you_mean(name, DELAYS)} A file of durations ends in .csv, that of a '
        "recorded run in .sqlite."
    )
