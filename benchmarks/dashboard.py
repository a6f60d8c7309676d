"""What a dashboard costs: opening a run of a million events, and 50 pages that watch a live run."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import asyncfed as af
from asyncfed.strategies.schedules import ConstantRate
from benchmarks.dashboard_pages import PANELS
from benchmarks.outcome import Line, Outcome

OPENING_GOAL, SLOWER_GOAL = 2.0, 0.05

TICKS = os.sysconf("SC_CLK_TCK")


class Shown(NamedTuple):
    """A dashboard that is running: its process, where it listens, and its token."""

    pid: int
    port: int
    token: str

    def cpu_seconds(self) -> float:
        """Processor time of the dashboard so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def get(self, path: str) -> bytes:
        """One answer."""
        request = Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urlopen(request, timeout=60) as answer:
            body: bytes = answer.read()
            return body


def measure(events: int = 1_000_000, pages: int = 50, updates: int = 60_000, repeats: int = 3) -> Outcome:
    """CPU seconds of the server until a page of a long run is filled; updates/s of a live run, watched and not."""
    opening = _open_long_run(events)
    alone, watched, spent, answers = [], [], [], 0
    for repeat in range(repeats + 1):
        for is_watched in (repeat % 2 == 0, repeat % 2 == 1):  # each as often first as second
            if is_watched:
                rate, cores, count = _watched_rate(updates, pages)
                watched.append(rate)
                spent.append(cores)
                answers += count
            else:
                with tempfile.TemporaryDirectory() as folder:
                    alone.append(_live_rate(updates, folder))
    rates = {"alone": alone[1:], "watched": watched[1:]}  # the first time does not count
    slower = 1.0 - median(w / a for w, a in zip(rates["watched"], rates["alone"], strict=True))
    what = f"a finished run of {opening['events']:,} events opens, server CPU"
    watching = f"{pages} pages watch a live run; dashboard used {median(spent[1:]):.2f} cores, {answers} answers"
    lines = [
        Line(what, f"{opening['cpu']:.2f} s", None, f"<= {OPENING_GOAL:g} s", opening["cpu"] <= OPENING_GOAL),
        Line(watching, f"{slower:+.1%} updates/s lost", None, f"<= {SLOWER_GOAL:.0%}", slower <= SLOWER_GOAL),
    ]
    return Outcome(lines, {"opening": opening, "rates": rates, "dashboard_cores": spent[1:], "answers": answers})


def _open_long_run(events: int) -> dict[str, Any]:
    """Three events an update: dispatch, report and merge."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = _experiment(clients=1000, samples=20_000, updates=-(-events // 3), concurrency=100)
        af.run(experiment, out=Path(folder) / "long.sqlite").journal.close()
        with _dashboard(folder) as shown:
            shown.get("/api/runs")
            before, begun = shown.cpu_seconds(), monotonic()
            answers = {panel: shown.get(f"/api/runs/long.sqlite{panel}") for panel in PANELS}
            wall, cpu = monotonic() - begun, shown.cpu_seconds() - before
    summary = json.loads(answers[""])
    return {"events": summary["events"], "cpu": cpu, "wall": wall, "bytes": {p: len(a) for p, a in answers.items()}}


def _watched_rate(updates: int, pages: int) -> tuple[float, float, int]:
    """Updates per second of a live run, cores that the dashboard used, and answers that it gave."""
    with tempfile.TemporaryDirectory() as folder, _dashboard(folder) as shown:
        command = [sys.executable, "-m", "benchmarks.dashboard_pages", str(shown.port), shown.token, str(pages)]
        readers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        before, begun = shown.cpu_seconds(), monotonic()
        rate = _live_rate(updates, folder)
        cores = (shown.cpu_seconds() - before) / (monotonic() - begun)
        answers, _ = readers.communicate()  # they end when nobody can write to them any more
    return rate, cores, int(answers)


def _live_rate(updates: int, folder: str) -> float:
    """Updates per second by the run's own clock, which begins when all processes are there."""
    experiment = _experiment(clients=8, samples=256, updates=updates, concurrency=8)
    run = af.run_live(experiment, out=Path(folder) / "live.sqlite")
    elapsed = float(run.evaluations["elapsed"][-1])
    run.journal.close()
    return updates / elapsed


def _experiment(clients: int, samples: int, updates: int, concurrency: int) -> af.Experiment:
    work = af.Work(epochs=1, batch_size=32, learning_rate=0.001)
    return af.Experiment(
        name="dashboard",
        num_clients=clients,
        data=af.data.PaperRegression(num_samples=samples),
        strategy=af.strategies.AFL(concurrency=concurrency, aggregate="mixing", work=work, schedule=ConstantRate()),
        budget=af.Budget(updates=updates),
        evaluation=af.Evaluation(every=0),
    )


@contextmanager
def _dashboard(folder: str) -> Iterator[Shown]:
    token = secrets.token_urlsafe(16)
    command = [sys.executable, "-m", "asyncfed", "dashboard", folder, "--token", token, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline()
        shown = Shown(process.pid, int(address.split("127.0.0.1:")[1].split("/")[0]), token)
        try:
            shown.get("/api/runs")  # it listens before it says where; it answers when it has begun
            yield shown
        finally:
            process.terminate()
