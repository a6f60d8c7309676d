"""The strategies of the study, by name, each with its own settings and half of the clients at work."""

from __future__ import annotations

from collections.abc import Callable

from asyncfed.core.record import Record
from asyncfed.core.types import Work
from asyncfed.strategies.ace import ACE
from asyncfed.strategies.afl import AFL
from asyncfed.strategies.fedasync import FedAsync
from asyncfed.strategies.fedavg import FedAvg
from asyncfed.strategies.fedbuff import FedBuff
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate

NUM_CLIENTS = 10
AT_WORK = 5
"""Clients at work at once, in a cohort, or in a buffer: half of them."""


class StudyStrategy(Record):
    """A strategy by name.

    Args:
        name: what it is called in the study.
        summary: a line about it.
        make: the strategy for a work.
    """

    name: str
    summary: str
    make: Callable[[Work], Strategy]


def _strategies() -> list[StudyStrategy]:
    return [
        StudyStrategy(
            "fedbuff",
            f"a step with the mean of every {AT_WORK} changes that arrive",
            lambda work: FedBuff(concurrency=AT_WORK, buffer_size=AT_WORK, work=work),
        ),
        StudyStrategy(
            "fedavg",
            f"synchronous: the mean of {AT_WORK} clients' models, when all have reported",
            lambda work: FedAvg(cohort_size=AT_WORK, work=work),
        ),
        StudyStrategy(
            "fedasync",
            "mixing on arrival, mixing 0.6 with a polynomial discount",
            lambda work: FedAsync(concurrency=AT_WORK, work=work),
        ),
        StudyStrategy(
            "afl",
            f'the paper\'s AFL in its delta form: every change counts 1/{AT_WORK} as it arrives ("delta_mean")',
            lambda work: AFL(concurrency=AT_WORK, aggregate="delta_mean", schedule=ConstantRate(), work=work),
        ),
        StudyStrategy(
            "ace",
            "every arrival moves the model by the mean of all clients' last changes",
            lambda work: ACE(concurrency=AT_WORK, work=work),
        ),
    ]


STRATEGIES: dict[str, StudyStrategy] = {strategy.name: strategy for strategy in _strategies()}
"""All strategies by name, in the order in which they are listed."""
