"""AsyncFed: asynchronous federated learning that can be trusted.

>>> import asyncfed as af
>>> run = af.run(af.presets.regression(rounds=3))
>>> run.verdict, len(run.rounds["round"])
('finished', 3)

Names are imported when they are first used, so that `import asyncfed` alone costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncfed import (
        attacks,
        data,
        delays,
        errors,
        presets,
        privacy,
        problems,
        rules,
        strategies,
        testing,
        theory,
        uplinks,
    )
    from asyncfed.analysis.comparison import Comparison, compare
    from asyncfed.api import Run, advise, certify, load, register, resume, run, run_live, verify, what_if
    from asyncfed.attacks.liars import Liars
    from asyncfed.certificates.certificate import Certificate
    from asyncfed.cluster.live_engine import RayEngine
    from asyncfed.cluster.ray_cluster import Cluster
    from asyncfed.core.record import Config, Record, replace
    from asyncfed.core.types import (
        Action,
        Budget,
        Cancel,
        Combine,
        Dispatch,
        Drop,
        Merge,
        Report,
        Schedule,
        Stop,
        Train,
        Update,
        Uplink,
        Wake,
        Work,
    )
    from asyncfed.delays.delay_protocols import DelayModel, Timing
    from asyncfed.engine.evaluation import Evaluation
    from asyncfed.engine.plan import Churn
    from asyncfed.engine.stopping import Stopping
    from asyncfed.experiment import Experiment, from_toml, read_toml, to_toml
    from asyncfed.live.checks import Limits
    from asyncfed.live.local.local_engine import LocalEngine
    from asyncfed.live.session import CheckpointPolicy
    from asyncfed.problems.protocol import Problem
    from asyncfed.report.page.advice_page import Advice
    from asyncfed.rules.protocol import Arrival, Rule, ServerRule
    from asyncfed.runs.live import LiveProgress
    from asyncfed.runs.progress import Progress
    from asyncfed.runs.verify import Verification
    from asyncfed.runs.workers import Workers
    from asyncfed.strategies.discounts import Discount, Hinge, NoDiscount, Polynomial
    from asyncfed.strategies.protocol import Strategy, View
    from asyncfed.strategies.samplers import (
        Fair,
        Sampler,
        ShortestQueue,
        ShuffledCycle,
        UniformAll,
        UniformIdle,
        Weighted,
    )
    from asyncfed.strategies.schedules import ConstantRate, DelayAware
    from asyncfed.version import __version__

_NAMES_IN = {
    "asyncfed.analysis.comparison": ("Comparison", "compare"),
    "asyncfed.api": ("Run", "advise", "certify", "load", "register", "resume", "run", "run_live", "verify", "what_if"),
    "asyncfed.attacks.liars": ("Liars",),
    "asyncfed.certificates.certificate": ("Certificate",),
    "asyncfed.cluster.live_engine": ("RayEngine",),
    "asyncfed.cluster.ray_cluster": ("Cluster",),
    "asyncfed.core.record": ("Config", "Record", "replace"),
    "asyncfed.core.types": (
        "Action",
        "Budget",
        "Cancel",
        "Combine",
        "Dispatch",
        "Drop",
        "Merge",
        "Report",
        "Schedule",
        "Stop",
        "Train",
        "Update",
        "Uplink",
        "Wake",
        "Work",
    ),
    "asyncfed.delays.delay_protocols": ("DelayModel", "Timing"),
    "asyncfed.engine.evaluation": ("Evaluation",),
    "asyncfed.engine.plan": ("Churn",),
    "asyncfed.engine.stopping": ("Stopping",),
    "asyncfed.experiment": ("Experiment", "from_toml", "read_toml", "to_toml"),
    "asyncfed.live.checks": ("Limits",),
    "asyncfed.live.local.local_engine": ("LocalEngine",),
    "asyncfed.live.session": ("CheckpointPolicy",),
    "asyncfed.problems.protocol": ("Problem",),
    "asyncfed.report.page.advice_page": ("Advice",),
    "asyncfed.rules.protocol": ("Arrival", "Rule", "ServerRule"),
    "asyncfed.runs.live": ("LiveProgress",),
    "asyncfed.runs.progress": ("Progress",),
    "asyncfed.runs.verify": ("Verification",),
    "asyncfed.runs.workers": ("Workers",),
    "asyncfed.strategies.discounts": ("Discount", "Hinge", "NoDiscount", "Polynomial"),
    "asyncfed.strategies.protocol": ("Strategy", "View"),
    "asyncfed.strategies.samplers": (
        "Fair",
        "Sampler",
        "ShortestQueue",
        "ShuffledCycle",
        "UniformAll",
        "UniformIdle",
        "Weighted",
    ),
    "asyncfed.strategies.schedules": ("ConstantRate", "DelayAware"),
    "asyncfed.version": ("__version__",),
}
"""The same once more for when the program runs: the module of every public name."""

_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}
_MODULES = (
    "attacks",
    "data",
    "delays",
    "errors",
    "presets",
    "privacy",
    "problems",
    "rules",
    "strategies",
    "testing",
    "theory",
    "uplinks",
)

__all__ = [
    "Action",
    "Advice",
    "Arrival",
    "Budget",
    "Cancel",
    "Certificate",
    "CheckpointPolicy",
    "Churn",
    "Cluster",
    "Combine",
    "Comparison",
    "Config",
    "ConstantRate",
    "DelayAware",
    "DelayModel",
    "Discount",
    "Dispatch",
    "Drop",
    "Evaluation",
    "Experiment",
    "Fair",
    "Hinge",
    "Liars",
    "Limits",
    "LiveProgress",
    "LocalEngine",
    "Merge",
    "NoDiscount",
    "Polynomial",
    "Problem",
    "Progress",
    "RayEngine",
    "Record",
    "Report",
    "Rule",
    "Run",
    "Sampler",
    "Schedule",
    "ServerRule",
    "ShortestQueue",
    "ShuffledCycle",
    "Stop",
    "Stopping",
    "Strategy",
    "Timing",
    "Train",
    "UniformAll",
    "UniformIdle",
    "Update",
    "Uplink",
    "Verification",
    "View",
    "Wake",
    "Weighted",
    "Work",
    "Workers",
    "__version__",
    "advise",
    "attacks",
    "certify",
    "compare",
    "data",
    "delays",
    "errors",
    "from_toml",
    "load",
    "presets",
    "privacy",
    "problems",
    "read_toml",
    "register",
    "replace",
    "resume",
    "rules",
    "run",
    "run_live",
    "strategies",
    "testing",
    "theory",
    "to_toml",
    "uplinks",
    "verify",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"asyncfed.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'asyncfed' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value  # so that the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
