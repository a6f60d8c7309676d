"""Ways to send less, by name, with settings that serve: what `--compress` puts in."""

from __future__ import annotations

from typing import Any

from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.uplinks import EF21, QSGD, Cast, ErrorFeedback, LowRank, RandK, SendIf, Sign, TopK, Uplink

# Of any type: `SendIf` and `EF21` take one argument more than the protocol of an uplink says.
COMPRESSIONS: dict[str, Any] = {
    "top_k": ErrorFeedback(codec=TopK(fraction=0.01)),
    "rand_k": ErrorFeedback(codec=RandK(fraction=0.01, scaled=False)),
    "sign": ErrorFeedback(codec=Sign()),
    "low_rank": ErrorFeedback(codec=LowRank()),
    "qsgd": QSGD(),
    "bfloat16": Cast(to="bfloat16"),
    "send_if": SendIf(at_most=4),
    "ef21": EF21(codec=TopK(fraction=0.05)),
}
"""Biased codecs are inside error feedback; those that are right in the mean, or nearly exact, are not."""


def compression_named(name: str) -> Uplink:
    """The uplink of this name, for `Work.uplink`.

    Args:
        name: one of `COMPRESSIONS`.

    Returns:
        The uplink.

    Raises:
        ConfigError: there is none of this name; it suggests the nearest.

    >>> compression_named("top_k").codec.fraction
    0.01
    """
    if name not in COMPRESSIONS:
        raise ConfigError(f'There is no way to compress called "{name}". {did_you_mean(name, COMPRESSIONS)}')
    uplink: Uplink = COMPRESSIONS[name]
    return uplink
