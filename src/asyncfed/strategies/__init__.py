"""The algorithms, one file each, and their parts: frozen values that decide numbers and never see a vector."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from asyncfed import registry
from asyncfed.core.types import Schedule
from asyncfed.strategies.afl import AFL
from asyncfed.strategies.aflguard import AFLGuard
from asyncfed.strategies.algorithm import Algorithm, add_algorithm, algorithms
from asyncfed.strategies.async_sgd import AsyncSGD
from asyncfed.strategies.bounded_staleness import BoundedStaleness
from asyncfed.strategies.cyclic import CyclicWeightTransfer
from asyncfed.strategies.discounts import Discount, Hinge, NoDiscount, Polynomial
from asyncfed.strategies.dispatch import (
    Cohort,
    CohortState,
    Dispatching,
    DispatchPolicy,
    KeepBusy,
    OneByOne,
    SamplerState,
)
from asyncfed.strategies.fedasync import FedAsync
from asyncfed.strategies.fedavg import FedAvg, fedprox
from asyncfed.strategies.fedbuff import FedBuff
from asyncfed.strategies.fedcompass import FedCompass
from asyncfed.strategies.participation_caps import ParticipationCaps
from asyncfed.strategies.participation_weighted import ParticipationWeighted
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.published_scripts import PublishedScripts
from asyncfed.strategies.ringmaster import Ringmaster
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
from asyncfed.strategies.single_updates import SumOnly, why_single_updates

__all__ = [
    "AFL",
    "AFLGuard",
    "Algorithm",
    "AsyncSGD",
    "BoundedStaleness",
    "Cohort",
    "CohortState",
    "ConstantRate",
    "CyclicWeightTransfer",
    "DelayAware",
    "Discount",
    "DispatchPolicy",
    "Dispatching",
    "Fair",
    "FedAsync",
    "FedAvg",
    "FedBuff",
    "FedCompass",
    "Hinge",
    "KeepBusy",
    "NoDiscount",
    "OneByOne",
    "ParticipationCaps",
    "ParticipationWeighted",
    "Polynomial",
    "PublishedScripts",
    "Ringmaster",
    "Sampler",
    "SamplerState",
    "Schedule",
    "ShortestQueue",
    "ShuffledCycle",
    "Strategy",
    "SumOnly",
    "UniformAll",
    "UniformIdle",
    "Weighted",
    "add_algorithm",
    "algorithms",
    "fedprox",
    "why_single_updates",
]

for _module in iter_modules(__path__):  # a file of this folder is all that a new algorithm needs
    import_module(f"{__name__}.{_module.name}")

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Strategies and their parts that files of this folder register, by the name of their class."""
        for part in ("strategy", "sampler", "discount", "schedule"):
            for member in registry.kinds(part).values():
                if member.__name__ == name and member.__module__.startswith(f"{__name__}."):
                    return member
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
