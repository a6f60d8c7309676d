"""Runs on a file system that nothing can be written to, root's own commands included."""

import os
import shutil
import subprocess
import sys

import pytest

import asyncfed as af

COMMANDS = """
import contextlib, io, os, sys
from pathlib import Path
from asyncfed.cli.app import main

run, out = sys.argv[1:3]
try:
    Path(run).with_name("probe").touch()
    sys.exit("the folder can be written to")
except OSError:
    pass
for arguments, expected in {
    ("show", run): 0,
    ("report", run, "--out", f"{out}/report.html"): 0,
    ("verify", run): 0,
    ("replay", run, "--strategy", "fedbuff"): 0,
    ("export", run, f"{out}/events.csv", "--table", "events"): 0,
    ("resume", run): 0,
    ("run", "regression", "--rounds", "1", "--out", run, "--force"): 2,
}.items():
    sys.argv = ["asyncfed", *arguments]
    said, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        code = end.code or 0
    if code != expected:
        sys.exit(f"{arguments} ended with {code}: {said.getvalue()}")
"""


@pytest.mark.slow
def test_a_finished_run_on_a_read_only_file_system_can_be_read_by_every_command(small, tmp_path):
    folder, out = tmp_path / "runs", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    af.run(small(), out=folder / "run.sqlite").journal.close()
    if shutil.which("unshare") is None:
        pytest.skip("a read-only mount needs the command unshare")
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0"'
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount, str(folder)], capture_output=True).returncode:
        pytest.skip("this machine does not let a process have mounts of its own")
    command = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', str(folder), sys.executable, "-c", COMMANDS]
    done = subprocess.run([*command, str(folder / "run.sqlite"), str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.listdir(folder) == ["run.sqlite"]
    assert sorted(os.listdir(out)) == ["events.csv", "report.html"]
