"""The parts of simulated tickets: download and upload follow from the experiment's delays, client by client.

Of live runs only when a ticket was sent, begun and ended is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import ValidationError, from_plain
from asyncfed.core.types import Work
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.ticket_bytes import bytes_of_tickets
from asyncfed.delays.delay_model import BoundDelays, Delays

TRANSFERS = ("download", "upload", "bandwidth_down", "bandwidth_up", "devices")
"""What of the delays is read: nothing that names a file."""


class Phases(NamedTuple):
    """Seconds of download and of upload, a value for each ticket."""

    download: np.ndarray
    upload: np.ndarray


def ticket_phases(view: RunView, clients: np.ndarray, tickets: np.ndarray) -> Phases | None:
    """The parts of these tickets of these clients; None if nothing is known of them, or none takes time."""
    model = view.once("transfers", lambda: _transfers(view))
    if model is None:
        return None
    work, (down, up) = Work(), bytes_of_tickets(view)
    pairs = list(zip(clients.tolist(), tickets.tolist(), strict=True))
    timings = [model.timing(client, ticket, work, 1) for client, ticket in pairs]
    download, upload = np.array([t.download for t in timings]), np.array([t.upload for t in timings])
    if model.limits_bandwidth:
        moved = np.array([model.transfer_seconds(client, int(down), int(up)) for client, _ in pairs]).reshape(-1, 2)
        download, upload = download + moved[:, 0], upload + moved[:, 1]
    return Phases(download, upload)


def _transfers(view: RunView) -> BoundDelays | None:
    """The model of downloads and uploads; None of live runs, of clocks that the caller gave, and without transfers."""
    header = view.header
    plain: Any = header["experiment"].get("delays")
    if view.kind != "simulated" or header.get("own_delays") or not isinstance(plain, dict) or "kind" in plain:
        return None
    try:
        delays = from_plain({name: plain[name] for name in TRANSFERS if name in plain}, Delays)
        model = delays.bind(int(header["num_clients"]), int(header["experiment"].get("seed", 0)))
    except (ConfigError, ValidationError, TypeError, ValueError):
        return None  # parts that are not registered here: what the lanes show is then the whole ticket
    is_instant = delays.download == Delays().download and delays.upload == Delays().upload
    return None if is_instant and not model.limits_bandwidth else model
