"""AsyncFed: asynchronous federated learning that can be trusted.

>>> import asyncfed as af
>>> run = af.run(af.presets.regression(rounds=3))
>>> run.verdict, len(run.rounds["round"])
('finished', 3)
"""

from asyncfed import data, delays, errors, presets, problems, strategies
from asyncfed.analysis.comparison import Comparison, compare
from asyncfed.certificates import Certificate, certify
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn
from asyncfed.engine.stopping import Stopping
from asyncfed.experiment import Experiment, from_toml, read_toml, to_toml
from asyncfed.live.checks import Limits
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.runs.live import resume_live, run_live
from asyncfed.runs.result import Run, load
from asyncfed.runs.simulate import resume, run, verify
from asyncfed.runs.workers import Workers
from asyncfed.strategies.schedules import ConstantRate, DelayAware
from asyncfed.version import __version__

__all__ = [
    "Budget",
    "Certificate",
    "Churn",
    "Comparison",
    "ConstantRate",
    "DelayAware",
    "Evaluation",
    "Experiment",
    "Limits",
    "LocalEngine",
    "Run",
    "Stopping",
    "Work",
    "Workers",
    "__version__",
    "certify",
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
