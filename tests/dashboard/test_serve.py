"""A real server, a real live run of another process, and a reader of the stream: what happens is seen in time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.dashboard.access import Access
from asyncfed.dashboard.serve import DashboardServer, address_of, listen
from asyncfed.dashboard.web_app import Dashboard

from .conftest import TOKEN, small_run

PATIENCE = 60.0
"""Seconds for what takes one or two on a machine with nothing else to do."""


@contextmanager
def serving(folder):
    listener = listen("127.0.0.1", 0)
    dashboard = Dashboard(folder, Access(token=TOKEN))
    server = DashboardServer(dashboard)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    address = address_of(listener, TOKEN).split("?")[0].rstrip("/")
    with httpx.Client(
        base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30, trust_env=False
    ) as client:
        yield client
    server.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


def wait_until(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(condition)


def read_events(client, path, events, stop):
    """Collect the events of a stream until told to stop."""
    with client.stream("GET", path, timeout=httpx.Timeout(30, read=5)) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        kind = None
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.append((kind, json.loads(line.removeprefix("data: ")), time.monotonic()))
            if stop.is_set():
                return


@contextmanager
def reading(client, path):
    events, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                read_events(client, path, events, stop)
            except (httpx.HTTPError, RuntimeError):  # nothing came for a while, or the client was closed
                continue

    threading.Thread(target=read, daemon=True).start()
    yield events
    stop.set()


def test_a_run_that_appears_is_told_to_every_page(tmp_path):
    with serving(tmp_path) as client, reading(client, "/api/stream") as events:
        wait_until(lambda: client.get("/api/runs").json()["runs"] == [])
        small_run(tmp_path / "new.sqlite", rounds=3)
        written = time.monotonic()
        wait_until(lambda: [event for event in events if event[0] == "folder"])
        assert events[-1][2] - written < 10  # within 2 s on a machine with nothing else to do
        assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == ["new.sqlite"]


def test_the_stream_is_closed_to_other_origins_and_strangers(tmp_path):
    with serving(tmp_path) as client:
        assert client.get("/api/stream", headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.get("/api/stream", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert client.get("/api/stream", headers={"Authorization": ""}).status_code == 401


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_a_live_run_is_followed_and_a_killed_client_is_seen(tmp_path):
    path = tmp_path / "live.sqlite"
    command = [sys.executable, "-m", "asyncfed", "live", "regression", "--num-clients", "3", "--rounds", "1000000"]
    process = subprocess.Popen(
        [*command, "--task-seconds", "0.02", "--fraction", "1", "--out", str(path)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    run = "/api/runs/live.sqlite"
    try:
        with serving(tmp_path) as client, reading(client, "/api/stream?runs=live.sqlite") as events:
            changes = wait_until(lambda: [e[1] for e in events if e[0] == "change" and e[1]["updates"] > 5])
            assert changes[-1]["state"] == "running"
            summary = client.get(run).json()
            assert (summary["kind"], summary["clock"], summary["state"]) == ("live", "wall", "running")
            assert summary["holder"]["pid"] == str(process.pid)
            seen = changes[-1]
            later = wait_until(lambda: [e[1] for e in events if e[0] == "change" and e[1]["updates"] > seen["updates"]])
            assert later[0]["change"] > seen["change"]
            workers = [worker for child in children(process.pid) for worker in children(child)]
            os.kill(workers[0], signal.SIGKILL)
            killed = time.monotonic()

            def is_seen():
                lanes = client.get(run + "/lanes?count=10").json()
                codes = [lanes["codes"][code] for lane in lanes["clients"] for _, _, code, _ in lane["segments"] or []]
                codes += [lanes["codes"][code] for lane in lanes["clients"] for code, _ in lane["bins"] or []]
                return {"lost", "away"} & set(codes)

            wait_until(is_seen)
            assert time.monotonic() - killed < 30  # within 5 s on a machine with nothing else to do
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_a_taken_port_is_said_to_be_taken():
    with listen("127.0.0.1", 0) as first, pytest.raises(ConfigError, match="cannot listen"):
        listen("127.0.0.1", first.getsockname()[1])
