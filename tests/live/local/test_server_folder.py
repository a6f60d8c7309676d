"""What a killed live server leaves behind, and that the next one clears it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from asyncfed.live.local.server_folder import delete_abandoned

SERVER = """
import sys
from multiprocessing import forkserver
from asyncfed.live.local.client_process import process_context

if __name__ == "__main__":
    process_context()
    forkserver.set_forkserver_preload([])
    forkserver.ensure_running()
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def serve(tmp_path):
    """`serve()`: a process that has what a live server starts its clients from, with its socket in this folder."""
    servers = []
    program = tmp_path / "server.py"
    program.write_text(SERVER)

    def start(folder):
        command, environment = [sys.executable, program], {**os.environ, "TMPDIR": str(folder)}
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
        servers.append(server)
        server.stdout.readline()
        return server

    yield start
    for server in servers:
        server.kill()
        server.communicate(timeout=20)


@pytest.fixture
def folder():
    """With a short path, as that of a socket must be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def end(server):
    server.communicate(timeout=20)
    assert server.returncode == 0


def sockets(folder):
    return [path for path in folder.rglob("*") if path.is_socket()]


def test_a_killed_server_leaves_a_socket_and_the_next_deletes_it(serve, folder):
    killed, living = serve(folder), serve(folder)
    assert len(sockets(folder)) == 2
    killed.kill()
    killed.wait()
    assert len(sockets(folder)) == 2
    third = serve(folder)
    assert len(sockets(folder)) == 2  # of those that are alive
    for server in (living, third):
        end(server)
    assert os.listdir(folder) == []


def test_a_server_whose_temporary_files_have_long_paths_starts_too(serve, folder):
    long = folder / ("x" * (103 - 32 - len(str(folder)) - 2))
    long.mkdir()
    server = serve(long)
    assert len(sockets(long)) == 1
    end(server)
    assert os.listdir(long) == []


def test_what_is_not_ours_is_left_alone(tmp_path, monkeypatch):
    for name in ("asyncfed-1", "asyncfed-2", "other-3"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.lock").touch()
    (tmp_path / "asyncfed-4").mkdir()
    status = Path.lstat
    monkeypatch.setattr(
        Path,
        "lstat",
        lambda self: (
            os.stat_result((*status(self)[:4], 12345, *status(self)[5:])) if "2" in self.name else status(self)
        ),
    )
    delete_abandoned(tmp_path)
    left = sorted(os.listdir(tmp_path))
    assert left == ["asyncfed-2", "asyncfed-2.lock", "asyncfed-4", "other-3", "other-3.lock"]
