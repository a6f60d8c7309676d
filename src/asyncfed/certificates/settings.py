"""An experiment as the theorems see it, before and after its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from asyncfed.analysis.codec_table import describe_uplinks
from asyncfed.certificates.merge_rules import RULES, declared_staleness, round_size, server_rule
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, kind_of, to_plain
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Work
from asyncfed.engine.trajectory import Trajectory
from asyncfed.experiment import Experiment
from asyncfed.rules.protocol import rule_of
from asyncfed.strategies.protocol import Strategy
from asyncfed.theory.setting import Batches, ServerRule, Setting

CHURN = "clients join and leave"


def setting_of(experiment: Experiment, num_examples: np.ndarray, num_params: int | None = None) -> Setting:
    """What is known before a run; `num_examples` (C,) are the clients' numbers of rows.

    With `num_params`, the constants of codecs are named.
    """
    strategy = experiment.strategy
    work = planned_work(strategy, num_examples, experiment.seed)
    schedule = schedule_of(strategy)
    steps_per_epoch = -(-num_examples // work.batch_size)
    decay = 0.5 if schedule.get("over") == "epoch" else work.decay
    fewest, most = (work.count_steps(int(rows)) for rows in (num_examples.min(), num_examples.max()))
    epochs = work.epochs if work.steps is UNSET else -(-work.steps // int(steps_per_epoch.min()))
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
        fewest_steps=fewest,
        most_steps=most,
        batches=_batches(num_examples, work.batch_size),
        batch_size=work.batch_size,
        num_versions=None if rounds is None else -(-rounds * size // rule.cohort_size),
        num_rounds=rounds,
        shape=np.asarray((np.arange(most) // int(steps_per_epoch.max()) + 1.0) ** -decay, np.float64),
        changing_rate=_why_rates_change(schedule),
        decay_over_rounds=schedule.get("over") == "round",
        declared_staleness=declared_staleness(strategy, len(num_examples)),
        outside=tuple(_not_covered(experiment, rule, work, num_params)),
        lossless=not experiment.delays.may_lose,
    )


def planned_work(strategy: Strategy, num_examples: np.ndarray, seed: int) -> Work:
    """What a strategy gives clients to do: its field `work` if it has one, else the work of its first ticket."""
    work = getattr(strategy, "work", None)
    if isinstance(work, Work):
        return work
    works = [
        decision.work
        for decision in Server(strategy, num_examples.tolist(), seed).start()
        if isinstance(decision, Dispatch)
    ]
    if not works:
        raise ConfigError(
            f"{type(strategy).__name__} dispatches no ticket when a run starts, so nothing can be said about its local "
            "steps. Let `start` return at least one Train."
        )
    return works[0]


def schedule_of(strategy: Strategy) -> dict[str, Any]:
    """The plain values of a strategy's learning-rate schedule; {} if it has none."""
    schedule = getattr(strategy, "schedule", None)
    return {} if schedule is None else dict(to_plain(schedule))


def with_observations(setting: Setting, trajectories: Sequence[Trajectory], lossless: bool) -> Setting:
    """The setting with what the runs showed: staleness, number of versions, and whether rates really changed.

    `lossless`: no run lost or dropped a ticket.
    """
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


def _why_rates_change(schedule: dict[str, Any]) -> str:
    """Why rates may differ between rounds; empty if they do not."""
    kind = schedule.get("kind")
    if kind == "constant":
        return ""
    if kind is None:
        return "the strategy sets the rate of every ticket itself"
    if kind != "delay_aware":
        return f'the schedule "{kind}" may set any rate'
    reasons = []
    if schedule.get("over") == "round":
        reasons.append("the rate falls as 1/sqrt(round)")
    if schedule.get("delay_penalty"):
        reasons.append("the rate follows the delay spread")
    return " and ".join(reasons)


def _not_covered(experiment: Experiment, rule: ServerRule, work: Work, num_params: int | None) -> Iterator[str]:
    if type(experiment.strategy) not in RULES:
        yield f'no theorem covers the strategy "{rule.name}"'
    if work.start == "own":
        yield "clients start from their own models, not from the server's"
    if work.proximal:
        yield "local steps have a proximal term"
    if work.momentum is not UNSET:
        yield "local steps have momentum"
    if work.patience is not UNSET:
        yield "clients may stop early"
    if work.steps is not UNSET:
        yield "clients make a number of steps of their own"
    if work.downlink is not UNSET:
        yield "clients start from what a downlink lets through of the model"
    if work.uplink is not UNSET:
        yield (
            "clients send what their uplinks make of their changes, and no bound covers compressed changes "
            f"({describe_uplinks(work.uplink, num_params)})"
        )
    vector_rule = rule_of(experiment.run_strategy())
    if vector_rule is not None and vector_rule.theorem is None:
        yield f'no theorem covers the rule "{kind_of(type(vector_rule))}"'
    if experiment.churn:
        yield CHURN
