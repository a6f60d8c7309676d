"""How many updates a second a live server merges on a Ray cluster: python -m benchmarks.live_ray [--address auto].

Needs the extra ray. In turn with `LocalEngine` on the same machine and the same experiment: next to nothing to train, a
journal on disk. Without --address, a cluster of one node is started on this machine, and ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncfed as af
from asyncfed.cluster.connection import Connection
from asyncfed.live.engine_protocol import Engine
from benchmarks.live import GOAL, rate, trivial

HOST, PORT = "127.0.0.4", 6399


@contextmanager
def one_node() -> Iterator[str]:
    """A cluster of one node, whose processes are those of one group."""
    with tempfile.TemporaryDirectory(prefix="af", dir="/tmp") as folder:
        command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats"]
        command += [f"--node-ip-address={HOST}", f"--port={PORT}", f"--num-cpus={os.cpu_count()}"]
        command += ["--include-dashboard=false", "--object-store-memory=200000000", f"--temp-dir={folder}"]
        node = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            assert node.stdout is not None
            if not any("Ray runtime started" in line for line in node.stdout):
                raise SystemExit("The node did not start.")
            yield f"{HOST}:{PORT}"
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_ray", description=__doc__)
    parser.add_argument("--address", help="of a cluster that runs")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--updates", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.address is not None:
        measure(options.address, options.clients, options.updates, options.repeats)
        return
    with one_node() as address:
        measure(address, options.clients, options.updates, options.repeats)


def measure(address: str, clients: int, updates: int, repeats: int) -> None:
    """Print the best rates; the goal is that of a live server on one machine."""
    engines: dict[str, Engine] = {
        f"Ray, {clients} actors": af.RayEngine(address=address),
        f"Ray, {clients} clients in 2 actors": af.RayEngine(address=address, clients_per_process=(clients + 1) // 2),
        f"local, {clients} processes": af.LocalEngine(),
    }
    rates: dict[str, list[float]] = {label: [] for label in engines}
    with Connection(address):
        for _ in range(repeats):
            for label, engine in engines.items():
                rates[label].append(rate(trivial(clients, updates), engine))
    for label, found in rates.items():
        every = ", ".join(f"{one:,.0f}" for one in found)
        print(f"{label}: {max(found):,.0f} updates/s (goal {GOAL:.0f}; {every})")


if __name__ == "__main__":
    main()
