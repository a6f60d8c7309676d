"""What to change in an experiment so that a theorem covers it: a short list of settings, tried before it is given."""

from __future__ import annotations

from math import isfinite
from typing import Any

from asyncfed.certificates.certifiable import certifiable_problem
from asyncfed.certificates.certificate import constants_of, with_theory_rate
from asyncfed.certificates.settings import setting_of
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import Record, to_plain
from asyncfed.experiment import Experiment, changed
from asyncfed.problems.protocol import Problem
from asyncfed.theory.constants import Constants

PENALTY = 0.01
"""An L2 penalty that makes every client's loss strongly convex."""


class Advice(Record):
    """What makes a theorem cover an experiment.

    Args:
        settings: dotted keys of the experiment and what to set them to; the rate is to be `--lr theory` besides.
        theorem: the name of the theorem that then applies.
        experiment: the experiment with these settings, at the rate that the theorem advises.
    """

    settings: dict[str, Any]
    theorem: str
    experiment: Experiment

    @property
    def options(self) -> str:
        """The settings as options of the command line."""
        words = [f"--set {key}={_written(value)}" for key, value in self.settings.items()]
        return " ".join([*words, "--lr theory"])


def advise_settings(experiment: Experiment, problem: Problem | None = None) -> Advice | None:
    """The fewest settings that make a theorem cover an experiment; None if nothing that is tried does.

    What the loss lacks follows from its constants. How clients work, and whom the server waits for, is tried: as few
    changes as possible, each combination with the theorems themselves. Nothing is run.

    Args:
        experiment: any whose problem can be certified.
        problem: what it describes, if it was built already.
    """
    learnt = certifiable_problem(experiment.problem() if problem is None else problem)
    needed = _about_the_loss(constants_of(experiment, learnt))
    if needed:
        learnt = certifiable_problem(changed(experiment, needed).problem())
    known: dict[int, Constants] = {}  # they depend on the size of batches, and take long where there are many rows
    for change in _about_the_run(experiment, learnt):
        settings = needed | change
        try:
            other = changed(experiment, settings)
            size = other.strategy.work.batch_size
            known[size] = known[size] if size in known else constants_of(other, learnt)
            covered, theorem = with_theory_rate(other, learnt, known[size])
        except AsyncFedError:
            continue  # no theorem covers it at any rate
        return Advice(settings, theorem.name, covered)
    return None


def _about_the_loss(constants: Constants) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if constants.smoothness is None or not isfinite(constants.smoothness):
        settings = {"model.loss": "huber_hinge"}
    if not constants.strong_convexity:
        settings |= {"model.l2": PENALTY, "model.penalize_bias": True}
    return settings


def _about_the_run(experiment: Experiment, problem: Problem) -> list[dict[str, Any]]:
    """Changes to try, the smallest first."""
    setting = setting_of(experiment, problem.num_examples, problem.num_params)
    whole = {"strategy.work.batch_size": int(problem.num_examples.max())}
    bounded = {"strategy.max_staleness": 4 * max(1, setting.round_size)}
    cohort = {
        "strategy.kind": "fedavg",
        "strategy.cohort_size": min(max(1, setting.round_size), problem.num_clients),
        "strategy.weighting": "equal",
        # Another kind of strategy has no settings of the one before, so what clients do is said again.
        "strategy.work.epochs": experiment.strategy.work.epochs,
    }
    named = to_plain(experiment.strategy)
    tried: list[dict[str, Any]] = [{}, whole]
    if "max_staleness" in named:
        tried += [bounded, bounded | whole]
        if "aggregate" in named:
            tried += [{"strategy.aggregate": "delta_mean"} | change for change in (bounded, bounded | whole)]
    tried.append(cohort | whole)
    steady = {"churn": [], "delays.dropout": 0.0}
    if experiment.churn or to_plain(experiment.delays).get("dropout"):
        tried += [steady | change for change in tried]
    return tried


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
