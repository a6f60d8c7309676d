"""Which uplinks add noise that protects their client, and must therefore not be predictable for the server."""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.core.record import UnsetType
from asyncfed.core.types import Uplink


def draws_noise(uplinks: Sequence[Uplink] | UnsetType) -> bool:
    """Whether one of these uplinks, or one that they wrap, has `draws_noise`.

    In a live run the client draws the key of such an uplink from its own machine's entropy. So its message cannot be
    computed again; it is noised already, and the journal keeps it.
    """
    return not isinstance(uplinks, UnsetType) and any(map(adds_noise, uplinks))


def adds_noise(uplink: Uplink) -> bool:
    """Whether this uplink, or one among its settings, has `draws_noise`."""
    settings = [getattr(uplink, name) for name in getattr(uplink, "__struct_fields__", ())]
    wrapped = [setting for setting in settings if isinstance(setting, Uplink)]
    return bool(getattr(uplink, "draws_noise", False)) or any(map(adds_noise, wrapped))
