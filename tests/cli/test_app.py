"""The command line as a whole."""

import os
import subprocess
import sys

import pytest

import asyncfed as af
from asyncfed.cli.app import app


def test_the_version(cli):
    result = cli("--version")
    assert (result.code, result.out) == (0, f"asyncfed {af.__version__}")


def test_without_a_command_there_is_help():
    done = subprocess.run([sys.executable, "-m", "asyncfed"], capture_output=True, text=True, timeout=60)
    assert "Usage" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


HEAVY = {"matplotlib", "scipy", "numba", "numpy", "torch", "pyarrow", "pandas", "plotly", "sklearn", "flwr", "mlflow"}


COMMANDS = [info.name or info.callback.__name__ for info in app.registered_commands]


def test_help_loads_nothing_heavy():
    """Neither that of the whole nor that of any command, all asked in one process."""
    script = (
        "import sys; from asyncfed.cli.app import app\n"
        f"for words in {[['--help'], ['--version'], ['flower', '--help'], *([name, '--help'] for name in COMMANDS)]}:\n"
        "    app(words, standalone_mode=False)\n"
        f"print('loaded:', *{HEAVY} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"
    assert done.stdout.count("Usage: ") == len(COMMANDS) + 2


@pytest.mark.slow
def test_help_takes_little_more_than_typer_itself():
    """Of CPU time, by `run --help`; a ratio, for machines differ."""
    bare = "import typer; app = typer.Typer(rich_markup_mode=None); app.command()(lambda: None); app(['--help'])"
    ours = "from asyncfed.cli.app import app; app(['run', '--help'])"
    assert cpu_seconds(ours) < 3 * cpu_seconds(bare) + 0.1


def cpu_seconds(script):
    """The least of three, so that what else the machine does counts little."""
    took = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        after = os.times()
        took.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(took)
