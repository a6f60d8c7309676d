"""A run in progress for Prometheus: an endpoint on this machine with its progress as gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from asyncfed.core.errors import ConfigError
from asyncfed.report.terminal.progress import RunProgress

GAUGES = {
    "rounds": "Rounds done",
    "updates": "Updates merged",
    "elapsed": "Seconds since the run began",
    "objective": "Objective at the last evaluation",
    "version": "Version of the model",
    "in_flight": "Tickets in flight",
    "lost": "Tickets lost so far",
    "skipped": "Tickets answered with nothing worth sending so far",
    "refused": "Replies refused so far",
    "set_aside": "Nodes excluded for their faults",
}


class LiveProgress(RunProgress, Protocol):
    """How far a live run is, and what went wrong so far."""

    @property
    def version(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def set_aside(self) -> int: ...
    @property
    def filtered(self) -> Mapping[int, int]: ...


@contextmanager
def metrics_endpoint(port: int, run: str, address: str = "127.0.0.1") -> Iterator[Callable[[LiveProgress], None]]:
    """Serve `http://address:port/metrics` while the context is open; yields the function to call with progress."""
    try:
        from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
    except ImportError as error:
        raise ConfigError('Metrics need prometheus_client: pip install "asyncfed[prometheus]".') from error
    registry = CollectorRegistry()
    gauges = {name: Gauge(f"asyncfed_{name}", words, ["run"], registry=registry) for name, words in GAUGES.items()}
    filtered = Counter("asyncfed_filtered", "Updates left out as lies", ["run", "client"], registry=registry)
    counted: dict[int, int] = {}
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"metrics cannot be offered on port {port} ({error}). Choose another --metrics-port."
        ) from error

    def update(now: LiveProgress) -> None:
        for name, gauge in gauges.items():
            gauge.labels(run).set(getattr(now, name))
        for client, count in now.filtered.items():
            filtered.labels(run, str(client)).inc(count - counted.get(client, 0))
            counted[client] = count

    try:
        yield update
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
