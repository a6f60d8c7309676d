"""Clusters of Ray on this machine: every node has a loopback address, and is ended by the ids of its processes."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

# Nobody else on this machine can use the clusters of the tests, and Ray writes no token into the home folder.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))

HEAD, SECOND, THIRD = "127.0.0.2", "127.0.0.3", "127.0.0.6"
START_SECONDS = 90.0


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/cluster" in item.nodeid:
            item.add_marker(pytest.mark.ray)


class RayNode:
    """`ray start` with all its processes. With `head` it begins a cluster, else it joins the one at `address`."""

    def __init__(self, ip, address=None, folder=None, cpus=1, environment=None):
        self.ip, self.address = ip, address or f"{ip}:{free_port(ip)}"
        where = ["--head", f"--port={self.address.rpartition(':')[2]}", "--include-dashboard=false"]
        where += [f"--temp-dir={folder}"]
        self.process = subprocess.Popen(
            [
                str(Path(sys.executable).with_name("ray")),
                *("start", "--block", "--disable-usage-stats", f"--node-ip-address={ip}", f"--num-cpus={cpus}"),
                *("--object-store-memory=100000000", "--include-log-monitor=false"),
                *(where if address is None else [f"--address={address}"]),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
        )

    def wait(self):
        """Until it says that it runs."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "Ray runtime started" in line:
                return self
        raise RuntimeError(f"ray start ended: {''.join(lines)}")

    def kill(self):
        """All of it at once, as if the machine lost its power."""
        for pid in [*descendants(self.process.pid), self.process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def free_port(ip):
    with socket.socket() as one:
        one.bind((ip, 0))
        return one.getsockname()[1]


def children():
    """The processes of this machine by their parents'."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(folder.name))
    return found


def descendants(pid):
    family, waiting = children(), [pid]
    found = []
    while waiting:
        below = family.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


@pytest.fixture(scope="session")
def head():
    """The first node of a cluster; processes of this test session connect to it."""
    folder = tempfile.mkdtemp(prefix="af", dir="/tmp")  # short: sockets' paths are limited
    node = RayNode(HEAD, folder=folder).wait()
    yield node
    node.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _second(head):
    """The second node, in a list of one: a test may kill it and put another there."""
    nodes = [RayNode(SECOND, head.address).wait()]
    yield nodes
    for node in nodes:
        node.kill()


@pytest.fixture
def second(head, _second):
    """The second node, alive."""
    if _second[0].process.poll() is not None:
        _second[0] = RayNode(SECOND, head.address).wait()
    return _second[0]


@pytest.fixture
def address(head, second):
    """Of a cluster with two nodes of one CPU each."""
    return head.address


@pytest.fixture
def cluster(address):
    """`cluster(workers)`: a connection to two nodes that is closed after the test; what it says is in its `said`."""
    import asyncfed as af

    opened = []

    def connect(workers=None):
        said = []
        one = af.Cluster(address, workers, notify=said.append)
        one.said = said
        opened.append(one)
        return one

    yield connect
    for one in opened:
        one.close()


def actors_of(*nodes):
    """The processes of our actors on these nodes, by Ray's own names for them."""
    found = []
    for node in nodes:
        for pid in descendants(node.process.pid):
            with suppress(OSError):
                if b"ray::Worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
    return found


def wait_until(condition, seconds=30.0):
    """Whether it became true in that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
