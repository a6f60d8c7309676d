"""The algorithms, one file each: frozen values that decide numbers and never see a vector."""

from __future__ import annotations

from typing import TypeAlias

from asyncfed.strategies.afl import AFL
from asyncfed.strategies.cyclic import CyclicWeightTransfer
from asyncfed.strategies.fedasync import FedAsync
from asyncfed.strategies.fedavg import FedAvg, fedprox
from asyncfed.strategies.fedbuff import FedBuff
from asyncfed.strategies.published_scripts import PublishedScripts

__all__ = [
    "AFL",
    "CyclicWeightTransfer",
    "FedAsync",
    "FedAvg",
    "FedBuff",
    "PublishedScripts",
    "ShippedStrategy",
    "fedprox",
]

ShippedStrategy: TypeAlias = AFL | FedAvg | FedAsync | FedBuff | CyclicWeightTransfer | PublishedScripts
