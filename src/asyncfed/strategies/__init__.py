"""The algorithms, one file each, and their parts: frozen values that decide numbers and never see a vector."""

from __future__ import annotations

from asyncfed.core.types import Schedule
from asyncfed.strategies.afl import AFL
from asyncfed.strategies.aflguard import AFLGuard
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

__all__ = [
    "AFL",
    "AFLGuard",
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
    "UniformAll",
    "UniformIdle",
    "Weighted",
    "fedprox",
]
