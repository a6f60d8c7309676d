"""Two soaks of a live run with many processes: `python -m benchmarks.soak [--quick]`.

1. A million merges, or half an hour: the memory of server and clients must stay flat, and the bytes on disk for each
   merge are stated.
2. A server that is killed with SIGKILL every minute, for twenty minutes: an independent reader of the file
   (`journal_audit.py`) must find nothing lost and nothing merged twice; the clients must have seen nothing impossible;
   and events once seen in the file must be there, unchanged, after every resumption.

Ends with 1 if anything of that fails.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.soak.journal_audit import audit, prefix_digest
from benchmarks.soak.process_memory import descendants, private_bytes

MOST_GROWTH = 0.05
SAMPLE_SECONDS = 2.0


class Sample(NamedTuple):
    """One look at the server: how much it had merged, and its memory and that of its clients together, in bytes."""

    merges: int
    server: int
    clients: int


def start(path: Path, clients: int, merges: int, notes: Path) -> subprocess.Popen[bytes]:
    """The server as a process of its own."""
    command = [sys.executable, "-m", "benchmarks.soak.server", str(path), str(clients), str(merges), str(notes)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])


def merged(path: Path) -> int:
    """How many updates the closed rounds of the file have, whoever is writing to it; 0 while there is none."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30.0)) as file:
        return file.execute("SELECT max(updates) FROM rounds").fetchone()[0] or 0


def on_disk(path: Path) -> int:
    """Bytes of the file and of what lies beside it."""
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*"))


def wait_for_merges(path: Path, server: subprocess.Popen[bytes], wanted: int) -> None:
    """Until the server has begun to merge."""
    while merged(path) < wanted:
        if server.poll() is not None:
            raise SystemExit(f"the server ended with {server.returncode} before it had merged {wanted} updates")
        time.sleep(0.1)


def interrupt(server: subprocess.Popen[bytes]) -> None:
    """Ctrl-C: it saves and ends."""
    if server.poll() is None:
        server.send_signal(2)
    if server.wait(120) != 0:
        raise SystemExit(f"the server ended with {server.returncode}")


def soak_memory(folder: Path, clients: int, merges: int, seconds: float) -> list[str]:
    """The first soak; what is wrong."""
    path, notes = folder / "memory.sqlite", folder / "memory-notes"
    notes.mkdir()
    server = start(path, clients, merges, notes)
    wait_for_merges(path, server, 1)
    begun, samples, largest = time.monotonic(), [], 0
    while server.poll() is None and time.monotonic() < begun + seconds:
        own, *others = descendants(server.pid)
        samples.append(Sample(merged(path), private_bytes(own), sum(private_bytes(pid) for pid in others)))
        largest = max(largest, on_disk(path))
        if len(samples) % 30 == 1:
            done, own_bytes, clients_bytes = samples[-1]
            print(
                f"  {done:>9,} merges, server {own_bytes / 1e6:.1f} MB, clients {clients_bytes / 1e6:.0f} MB, "
                f"on disk {on_disk(path) / 1e6:.1f} MB",
                flush=True,
            )
        time.sleep(SAMPLE_SECONDS)
    interrupt(server)
    elapsed = time.monotonic() - begun
    found = audit(path, clients)
    growth = {name: _growth([getattr(sample, name) for sample in samples]) for name in ("server", "clients")}
    print(
        f"memory: {found.merges:,} merges of {clients} processes in {elapsed:.0f} s ({found.merges / elapsed:,.0f}/s); "
        f"private memory from the second fifth of the time to the last: server {growth['server']:+.1%}, clients "
        f"{growth['clients']:+.1%} (limit {MOST_GROWTH:.0%}); on disk {on_disk(path) / found.merges:.1f} bytes "
        f"a merge, {largest / found.merges:.1f} at most while it ran; least and most merged client "
        f"{found.counts.min():,} and {found.counts.max():,}"
    )
    grown = [f"memory of {name} grew by {by:.1%}" for name, by in growth.items() if by > MOST_GROWTH]
    return grown + found.contradictions + _seen_by_clients(notes)


def _growth(values: list[int]) -> float:
    """Of the median, from the second fifth to the last fifth."""
    fifth = len(values) // 5
    if fifth < 2:
        raise SystemExit(f"the soak ended after {len(values)} looks at its memory; let it run longer.")
    return median(values[-fifth:]) / median(values[fifth : 2 * fifth]) - 1.0


def soak_kills(folder: Path, clients: int, seconds: float, every: float, seed: int) -> list[str]:
    """The second soak; what is wrong."""
    path, notes = folder / "kills.sqlite", folder / "kills-notes"
    notes.mkdir()
    chance, wrong, kills = np.random.default_rng(seed), [], 0
    ends = time.monotonic() + seconds
    server = start(path, clients, 10**9, notes)
    while time.monotonic() < ends:
        wait_for_merges(path, server, merged(path) + 1)
        time.sleep(every * chance.uniform(0.8, 1.2))
        count, seen = prefix_digest(path)
        server.kill()
        server.wait()
        kills += 1
        if prefix_digest(path, count) != (count, seen):
            wrong.append(f"kill {kills}: the first {count} events are not those that were there before")
        print(f"  kill {kills}: {merged(path):,} merges, {count:,} events seen before it are there", flush=True)
        server = start(path, clients, 10**9, notes)
        wait_for_merges(path, server, merged(path) + 1)
        if prefix_digest(path, count) != (count, seen):
            wrong.append(f"kill {kills}: the first {count} events were changed by the resumption")
    interrupt(server)
    found = audit(path, clients)
    print(
        f"kills: {kills} kills of the server with {clients} processes, {found.merges:,} merges, {found.lost} tickets "
        f"lost with them, {len(found.contradictions)} contradictions in the file, "
        f"{on_disk(path) / found.merges:.1f} bytes a merge"
    )
    return wrong + found.contradictions + _seen_by_clients(notes)


def _seen_by_clients(notes: Path) -> list[str]:
    file = notes / "contradictions"
    return file.read_text().splitlines() if file.exists() else []


def main(arguments: list[str] | None = None) -> None:
    """Both soaks, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two minutes in all")
    parser.add_argument("--clients", type=int, default=32, help="processes")
    parser.add_argument("--merges", type=int, default=1_000_000, help="of the first soak, at most")
    parser.add_argument("--only", choices=("memory", "kills"), help="one of the two")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    options = parser.parse_args(arguments)
    memory_seconds, kill_seconds, every = (60.0, 50.0, 8.0) if options.quick else (1800.0, 1200.0, 60.0)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        if options.only != "kills":
            wrong += soak_memory(Path(folder), options.clients, options.merges, memory_seconds)
        if options.only != "memory":
            wrong += soak_kills(Path(folder), options.clients, kill_seconds, every, options.seed)
    for line in wrong[:50]:
        print(f"WRONG: {line}")
    print("soak:", f"{len(wrong)} things wrong" if wrong else "nothing lost, nothing merged twice, memory flat")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
