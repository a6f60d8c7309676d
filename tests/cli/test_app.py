"""The command line as a whole."""

import subprocess
import sys

import pytest

import asyncfed as af


def test_the_version(cli):
    result = cli("--version")
    assert (result.code, result.out) == (0, f"asyncfed {af.__version__}")


def test_without_a_command_there_is_help():
    done = subprocess.run([sys.executable, "-m", "asyncfed"], capture_output=True, text=True, timeout=60)
    assert "Usage" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


HEAVY = {"matplotlib", "scipy", "numba", "numpy", "torch", "pyarrow", "pandas", "plotly", "sklearn", "flwr", "mlflow"}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["flower", "--help"], ["--version"]], ids=" ".join)
def test_help_loads_nothing_heavy(words):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "asyncfed", *words], capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "asyncfed" in loaded
    assert not loaded & HEAVY
