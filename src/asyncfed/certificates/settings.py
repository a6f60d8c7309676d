"""An experiment, and later its runs, in the words of the theory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from asyncfed.certificates.merge_rules import declared_staleness, round_size, server_rule
from asyncfed.core.record import UNSET, to_plain
from asyncfed.core.types import Work
from asyncfed.engine.trajectory import Trajectory
from asyncfed.experiment import Experiment
from asyncfed.theory.setting import Batches, Setting

COMING_AND_GOING = "clients come and go"


def setting_of(experiment: Experiment, num_examples: np.ndarray) -> Setting:
    """What is known before a run."""
    strategy, work = experiment.strategy, experiment.strategy.work
    schedule = to_plain(strategy.schedule)
    steps_per_epoch = -(-num_examples // work.batch_size)
    epochs = work.epochs
    decay = 0.5 if schedule.get("over") == "epoch" else work.decay
    fades = (np.arange(epochs) + 1.0) ** -decay
    rule = server_rule(strategy, same_sizes=bool((num_examples == num_examples[0]).all()))
    if rule.form == "latest":  # an arrival replaces one of as many models in the mean
        rule = replace(rule, server_step=1.0 / len(num_examples))
    size = round_size(strategy, len(num_examples))
    rounds = _planned_rounds(experiment, size)
    return Setting(
        rule=rule,
        num_clients=len(num_examples),
        round_size=size,
        learning_rate=work.learning_rate,
        epochs=epochs,
        fewest_steps=int(epochs * steps_per_epoch.min()),
        most_steps=int(epochs * steps_per_epoch.max()),
        batches=_batches(num_examples, work.batch_size),
        batch_size=work.batch_size,
        num_versions=None if rounds is None else -(-rounds * size // rule.cohort_size),
        num_rounds=rounds,
        shape=np.repeat(fades, int(steps_per_epoch.max())),
        changing_rate=_changing(schedule),
        decay_over_rounds=schedule.get("over") == "round",
        declared_staleness=declared_staleness(strategy),
        outside=tuple(_outside(experiment, work)),
        lossless=not _may_lose(experiment),
    )


def as_it_ran(setting: Setting, trajectories: Sequence[Trajectory], lossless: bool) -> Setting:
    """The setting with what the runs showed: staleness, number of versions, and whether rates really changed."""
    rates = {k.work.learning_rate for path in trajectories for step in path.steps for k in step.tickets}
    changing, rate = setting.changing_rate, setting.learning_rate
    if len(rates) == 1:
        changing, rate = "", rates.pop()
    return replace(
        setting,
        learning_rate=rate,
        changing_rate=changing,
        observed_staleness=max((path.largest_staleness for path in trajectories), default=0),
        num_versions=max((len(path.steps) for path in trajectories), default=0),
        lossless=setting.lossless and lossless,
    )


def _planned_rounds(experiment: Experiment, size: int) -> int | None:
    budget = experiment.budget
    if budget.rounds is not None:
        return budget.rounds
    return None if budget.updates is None else -(-budget.updates // size)


def _batches(num_examples: np.ndarray, batch_size: int) -> Batches:
    if batch_size >= num_examples.max():
        return "full"
    return "equal" if not (num_examples % batch_size).any() else "uneven"


def _changing(schedule: dict[str, Any]) -> str:
    if schedule.get("kind") == "constant":
        return ""
    reasons = []
    if schedule.get("over") == "round":
        reasons.append("the rate falls as 1/sqrt(round)")
    if schedule.get("delay_penalty"):
        reasons.append("the rate follows the delay spread")
    return " and ".join(reasons)


def _may_lose(experiment: Experiment) -> bool:
    delays = experiment.delays
    return delays.dropout > 0 or any(device.dropout > 0 for device in delays.devices)


def _outside(experiment: Experiment, work: Work) -> Iterator[str]:
    if work.start == "own":
        yield "clients start from their own models, not from the server's"
    if work.proximal:
        yield "local steps have a proximal term"
    if work.momentum is not UNSET:
        yield "local steps have momentum"
    if work.patience is not UNSET:
        yield "clients may stop early"
    if experiment.churn:
        yield COMING_AND_GOING
