"""AsyncFed: asynchronous federated learning that can be trusted.

>>> import asyncfed as af
>>> run = af.run(af.presets.regression(rounds=3))
>>> run.verdict, len(run.rounds["round"])
('finished', 3)
"""

from asyncfed import data, delays, errors, presets, problems, strategies
from asyncfed.experiment import Experiment, from_toml, read_toml, to_toml
from asyncfed.run import Run, load
from asyncfed.running import resume, run, verify
from asyncfed.version import __version__

__all__ = [
    "Experiment",
    "Run",
    "__version__",
    "data",
    "delays",
    "errors",
    "from_toml",
    "load",
    "presets",
    "problems",
    "read_toml",
    "resume",
    "run",
    "strategies",
    "to_toml",
    "verify",
]
