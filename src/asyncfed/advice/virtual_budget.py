"""How long the simulated runs of a search last, in virtual seconds: the same for every strategy."""

from __future__ import annotations

import numpy as np

from asyncfed.advice.scoring import cost_of_target, find_target
from asyncfed.advice.trial_run import TrialRun
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget
from asyncfed.delays import estimate_durations
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem

PILOT_ROUNDS = 60
FEWEST_ROUNDS = 5
MULTIPLE = 4.0
"""How many times the time that synchronous FedAvg with its default settings needs."""

MOST_ROWS = 6_000_000
MOST_UPDATES = 12_000
"""What a run with every client at work may go through, so that simulating it takes a second or so."""

DRAWS = 20_000


def longest_budget(experiment: Experiment, problem: Problem) -> float:
    """The virtual seconds in which every client at work all the time makes MOST_UPDATES updates or MOST_ROWS rows."""
    model = experiment.delays.bind(problem.num_clients, experiment.seed)
    work, rows = experiment.strategy.work, problem.num_examples
    tickets = max(1, DRAWS // problem.num_clients)
    seconds = estimate_durations(model, problem.num_clients, work, rows, tickets).total
    if not (seconds > 0).all():
        raise ConfigError(
            "some client's work takes no virtual time, so time cannot be compared. Choose other delays, such as "
            "--delays stragglers, or a table of past job times."
        )
    trained = np.array([work.count_steps(int(n)) * min(work.batch_size, int(n)) for n in rows])
    return min(MOST_UPDATES / float(np.sum(1 / seconds)), MOST_ROWS / float(np.sum(trained / seconds)))


def pilot(experiment: Experiment, longest: float) -> Experiment:
    """The run by which the budget is found: synchronous FedAvg with default settings, PILOT_ROUNDS rounds."""
    return replace(experiment, budget=Budget(rounds=PILOT_ROUNDS, elapsed=MULTIPLE * longest))


def choose_budget(run: TrialRun, metric: str, progress: float, longest: float) -> float:
    """MULTIPLE times what the pilot needed to come to its own target, FEWEST_ROUNDS to PILOT_ROUNDS of its rounds.

    It is `longest` at most, so that no simulated run takes long.
    """
    rounds = np.array(run.elapsed[1:])
    if not len(rounds):
        return longest
    target = find_target(metric, [run], progress)
    needed = float("nan") if target is None else cost_of_target(run, target.level, "elapsed")
    if needed != needed:
        return float(min(longest, rounds[-1]))
    few = rounds[min(FEWEST_ROUNDS, len(rounds)) - 1]
    return float(min(longest, max(MULTIPLE * needed, few)))
