"""Names of simulated runs by what they depend on: their experiment and the code that computes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from asyncfed.core.record import to_json
from asyncfed.experiment import Experiment
from asyncfed.version import __version__

SIMULATION_ROOMS = (
    *("core", "kernels", "strategies", "rules", "uplinks", "problems", "data", "delays", "engine", "sim"),
    "store/ledger.py",
)
"""The code that what a simulated run gives depends on: folders and files of the package."""


def code_digest(purpose: str, parts: Sequence[str] = ()) -> str:
    """SHA-256 of AsyncFed's version and of the code that a run depends on: results of other code are not reused.

    Args:
        purpose: what the results are for, and in which format they are written.
        parts: folders and files of the package that they depend on beside `SIMULATION_ROOMS`.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(f"asyncfed {__version__} {purpose}".encode())
    for room in (*SIMULATION_ROOMS, *parts):
        place = package / room
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(file.relative_to(package).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def run_key(code: str, experiment: Experiment) -> str:
    """The name of a run: the digest of its experiment, which says its data, seed and limits, and of the code."""
    return hashlib.sha256(f"{code} {to_json(experiment)}".encode()).hexdigest()[:32]
