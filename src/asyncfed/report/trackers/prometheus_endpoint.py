"""A run in progress for Prometheus: an endpoint on this machine that answers with where the run is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from asyncfed.core.errors import ConfigError
from asyncfed.report.terminal.progress import HowFar

GAUGES = {
    "rounds": "Rounds done",
    "updates": "Updates merged",
    "elapsed": "Seconds since the run began",
    "objective": "Objective at the last evaluation",
    "version": "Version of the model",
    "in_flight": "Tickets that are out",
    "lost": "Tickets lost so far",
    "refused": "Replies refused so far",
    "set_aside": "Nodes set aside for their faults",
}


class LiveProgress(HowFar, Protocol):
    """How far a live run is, and how well."""

    @property
    def version(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def set_aside(self) -> int: ...


@contextmanager
def metrics_endpoint(port: int, run: str, address: str = "127.0.0.1") -> Iterator[Callable[[LiveProgress], None]]:
    """Serve `http://address:port/metrics` meanwhile; gives the function that the run tells how far it is."""
    try:
        from prometheus_client import CollectorRegistry, Gauge, start_http_server
    except ImportError as error:
        raise ConfigError('Metrics need prometheus_client: pip install "asyncfed[prometheus]".') from error
    registry = CollectorRegistry()
    gauges = {name: Gauge(f"asyncfed_{name}", words, ["run"], registry=registry) for name, words in GAUGES.items()}
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be served on port {port} ({error}). Choose another --metrics-port."
        ) from error

    def tell(now: LiveProgress) -> None:
        for name, gauge in gauges.items():
            gauge.labels(run).set(getattr(now, name))

    try:
        yield tell
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
