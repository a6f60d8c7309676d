"""--cluster of run and resume."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from tests.cluster.conftest import THIRD, RayNode, actors_of, wait_until

import asyncfed as af

OPTIONS = ("--rounds", "40", "--set", "strategy.concurrency=4")


def test_a_run_says_who_works_and_is_the_same(cli, address, tmp_path):
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    assert cli("run", "svm", *OPTIONS, "--out", here).code == 0
    result = cli("run", "svm", *OPTIONS, "--out", there, "--cluster", address, "--workers", 3)
    assert result.code == 0, result.err
    assert f"cluster {address}: nodes 127.0.0.2 (1 CPUs), 127.0.0.3 (1 CPUs)" in result.out
    assert "actors: 2 on 127.0.0.2, 1 on 127.0.0.3" in result.err
    runs = [af.load(file) for file in (here, there)]
    assert runs[0].sha256 == runs[1].sha256
    assert runs[0].header == runs[1].header


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_leaves_no_actor_and_is_resumed(cli, head, second, tmp_path, ending):
    file, options = tmp_path / "run.sqlite", ("--rounds", "1500", "--set", "strategy.concurrency=4")
    command = [sys.executable, "-m", "asyncfed", "run", "svm", *options, "--out", str(file)]
    command += ["--checkpoint-seconds", "0.1", "--cluster", head.address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert "actors: 1 on 127.0.0.2, 1 on 127.0.0.3" in process.stderr.readline()
        assert wait_until(lambda: len(actors_of(head, second)) == 2 and file.exists() and file.stat().st_size > 60_000)
        os.kill(process.pid, ending)
        process.communicate(timeout=60)
    assert process.returncode == (130 if ending == signal.SIGINT else -signal.SIGKILL)
    assert wait_until(lambda: not actors_of(head, second))
    if ending == signal.SIGINT:
        result = cli("resume", file, "--cluster", head.address)
        assert "actors: 1 on 127.0.0.2, 1 on 127.0.0.3" in result.err
    else:
        result = cli("resume", file)
    assert result.code == 0, result.err
    assert af.load(file).sha256 == af.run(af.load(file).experiment).sha256


def test_without_the_head_node_the_run_goes_on_here_or_is_resumed(cli, tmp_path):
    """Ray ends a process that has lost the head node for a while: it is a matter of who notices first."""
    folder = tempfile.mkdtemp(prefix="af", dir="/tmp")
    head = RayNode(THIRD, folder=folder).wait()
    file, options = tmp_path / "run.sqlite", ("--rounds", "600", "--set", "strategy.concurrency=4")
    command = [sys.executable, "-m", "asyncfed", "run", "svm", *options, "--out", str(file)]
    command += ["--checkpoint-seconds", "0.1", "--cluster", head.address]
    patience = {**os.environ, "RAY_gcs_rpc_server_reconnect_timeout_s": "30"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=patience
    ) as process:
        assert "actors: 1 on 127.0.0.6" in process.stderr.readline()
        assert wait_until(lambda: actors_of(head) and file.exists() and file.stat().st_size > 60_000)
        head.kill()
        said = process.communicate(timeout=120)[1].replace("\n", " ")
    shutil.rmtree(folder, ignore_errors=True)
    if process.returncode == 0:
        assert "is gone" in said
        assert "From here on, this process trains." in said
    else:
        assert "GCS may have been killed" in said
        assert cli("resume", file).code == 0
    run = af.load(file)
    assert run.sha256 == af.run(run.experiment).sha256
