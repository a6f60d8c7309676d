"""An environment for each rival, made once: `.venv-rivals/NAME` with torch, pinned, and the rival."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.rivals.systems import System

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv-rivals"
STAND_IN = Path(__file__).parent / "torchvision_stand_in"
LONGEST_REASON = 500


class NotInstalled(Exception):
    """A rival's environment cannot be made; the message says which command failed, and how."""


def interpreter(system: System, environments: Path = ENVIRONMENTS) -> Path:
    """The Python that has this system, after making its environment where there is none yet.

    Raises:
        NotInstalled: when a step fails. What was installed so far is left for the next attempt.
    """
    if not system.environment:
        return Path(sys.executable)
    folder = environments / system.environment
    python, stamp = folder / "bin" / "python", folder / ".installed"
    recipe = f"{system.requirement}\n{(ROOT / 'constraints.txt').read_text()}"
    if stamp.exists() and stamp.read_text() == recipe:
        return python
    if not python.exists():
        _do([sys.executable, "-m", "venv", str(folder)])
    install = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    install += ["-c", str(ROOT / "constraints.txt")]
    _do([*install, "torch", "numpy"])  # first and pinned: a rival's own choice would pull packages for GPUs
    if system.imports_torchvision:
        with tempfile.TemporaryDirectory() as scratch:  # building writes beside the sources
            copy = shutil.copytree(STAND_IN, Path(scratch) / "torchvision")
            _do([*install, str(copy)])
    _do([*install, system.requirement])
    stamp.write_text(recipe)
    return python


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "WARNING" not in line]
        shown = " ".join(command[1:]).replace(f"{ROOT}/", "")
        raise NotInstalled(f"`python {shown}` failed: {' '.join(said)[-LONGEST_REASON:]}")
