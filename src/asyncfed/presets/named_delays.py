"""Delays by short names."""

from __future__ import annotations

from collections.abc import Callable

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.delays import Delays, cluster, heavy_tailed, hospital, phones, published_laptop, stragglers

DELAYS: dict[str, tuple[str, Callable[[], Delays]]] = {
    "none": ("every ticket takes exactly 1 s", Delays),
    "laptop": ("like the published scripts' laptop: log-normal, milliseconds to half a second", published_laptop),
    "stragglers": ("1 s each, but a fifth of the clients takes 10 s", stragglers),
    "heavy_tailed": ("Pareto with shape 1.1: a few tickets take very long", heavy_tailed),
    "cluster": ("a shared cluster: lasting factors, correlated noise, stragglers that appear mid-run", cluster),
    "hospital": ("seven hospitals, half an hour at the largest and slowest, a VPN that drops", hospital),
    "phones": ("phones that charge at night in twelve time zones, three classes, slow links", phones),
}


def delays_named(name: str) -> Delays:
    """Ready-made delays by name.

    Args:
        name: one of `DELAYS`.

    Returns:
        The delays.
    """
    if name not in DELAYS:
        raise ConfigError(f'There are no delays "{name}". {did_you_mean(name, DELAYS)}')
    return DELAYS[name][1]()
