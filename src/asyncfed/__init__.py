"""AsyncFed: asynchronous federated learning that can be trusted.

>>> import asyncfed as af
>>> run = af.run(af.presets.regression(rounds=3))
>>> run.verdict, len(run.rounds["round"])
('finished', 3)
"""

from asyncfed import data, delays, errors, presets, problems, strategies
from asyncfed.compare import Comparison, compare
from asyncfed.core.record import replace
from asyncfed.core.schedule import ConstantRate, DelayAware
from asyncfed.core.types import Budget, Work
from asyncfed.deploying import resume_live, run_live
from asyncfed.experiment import Experiment, from_toml, read_toml, to_toml
from asyncfed.live.checks import Limits
from asyncfed.live.local.engine import LocalEngine
from asyncfed.run import Run, load
from asyncfed.running import resume, run, verify
from asyncfed.sim.evaluation import Evaluation
from asyncfed.sim.plan import Churn
from asyncfed.version import __version__

__all__ = [
    "Budget",
    "Churn",
    "Comparison",
    "ConstantRate",
    "DelayAware",
    "Evaluation",
    "Experiment",
    "Limits",
    "LocalEngine",
    "Run",
    "Work",
    "__version__",
    "compare",
    "data",
    "delays",
    "errors",
    "from_toml",
    "load",
    "presets",
    "problems",
    "read_toml",
    "replace",
    "resume",
    "resume_live",
    "run",
    "run_live",
    "strategies",
    "to_toml",
    "verify",
]
