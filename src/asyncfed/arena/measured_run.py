"""One simulated run, until its model and its worst clients have reached their targets, and what that cost."""

from __future__ import annotations

from math import isfinite

import numpy as np

from asyncfed.analysis.client_table import loss_of_worst_tenth
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Merge
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.execution import Execution
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem
from asyncfed.runs.simulate import collector_paused
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal

DIVERGED = 100.0
"""A model whose loss is so many times as far from the least as the first one's was will not come back."""

STALLED = 40
GAIN = 0.05
"""A run that has gained less than this share of what was left, in so many measurements, is given up."""

MOST_EVENTS = 20
"""Arrivals and timers, per update that a run may merge, after which it is given up: timers alone cost no time."""


class Targets(Record):
    """What a run of a cell and a seed has to reach: `level = least + remaining * (start - least)`, of both losses.

    Args:
        start: the objective, the mean of the clients' losses, of the first model.
        least: the objective of the optimum, or what it cannot be below.
        level: the objective to reach.
        worst_start: the mean loss of the worst tenth of the clients with the first model.
        worst_least: the same with the optimum.
        worst_level: the mean loss of the worst tenth to reach.
    """

    start: float
    least: float
    level: float
    worst_start: float
    worst_least: float
    worst_level: float

    def left(self, loss: float) -> float:
        """The share of the way that is left when the objective is this."""
        return (loss - self.least) / (self.start - self.least)

    def worst_left(self, loss: float) -> float:
        """The share of the way that is left when the loss of the worst tenth is this."""
        return (loss - self.worst_least) / (self.worst_start - self.worst_least)


class RunOutcome(Record):
    """What the arena keeps of a run.

    Args:
        verdict: "reached"; "not reached", of a run whose time, updates or clients ran out; "diverged"; "refused", of
            settings that the strategy does not take; "failed", of an error in the program.
        reason: why it ended, where it did not reach the target.
        time: virtual seconds until the target; None if it was not reached, as for all that follow.
        bytes: down and up until then.
        energy: joules of computing until then.
        worst_time: virtual seconds until the worst tenth of the clients reached theirs.
        left: the least share of the way to the optimum that was left.
        worst_left: the same of the worst tenth.
        updates: merged updates of the whole run.
        elapsed: virtual seconds of the whole run.
    """

    verdict: str
    reason: str
    time: float | None
    bytes: int | None
    energy: float | None
    worst_time: float | None
    left: float | None
    worst_left: float | None
    updates: int
    elapsed: float


def find_targets(problem: Problem, seed: int, remaining: float, worst_remaining: float, least_loss: float) -> Targets:
    """The targets that follow from a problem's first model and its optimum."""
    first = problem.client_losses(problem.init(seed))
    optimum = problem.optimum()
    best = np.full(len(first), least_loss) if optimum is None else problem.client_losses(optimum)
    start, least = float(np.mean(first)), float(np.mean(best))
    worst_start, worst_least = loss_of_worst_tenth(first), loss_of_worst_tenth(best)
    return Targets(
        start,
        least,
        least + remaining * (start - least),
        worst_start,
        worst_least,
        worst_least + worst_remaining * (worst_start - worst_least),
    )


def run_to_targets(experiment: Experiment, problem: Problem, targets: Targets) -> RunOutcome:
    """Simulate until both targets are reached or the budget is spent; measure as the experiment's evaluation says."""
    try:
        with np.errstate(all="ignore"), collector_paused():  # errors of runs that diverge
            return _run_to_targets(experiment, problem, targets)
    except AsyncFedError as error:
        return without_run("refused", str(error))
    except Exception as error:
        return without_run("failed", f"{type(error).__name__}: {error}")


def without_run(verdict: str, reason: str) -> RunOutcome:
    """The outcome of a run that did not come about."""
    return RunOutcome(verdict, reason, None, None, None, None, None, None, 0, 0.0)


def _run_to_targets(experiment: Experiment, problem: Problem, targets: Targets) -> RunOutcome:
    experiment.run_strategy().check(problem.num_clients)
    watch = TargetWatch(problem, targets, experiment.evaluation.every)
    plan = replace(experiment, evaluation=Evaluation(every=0, distance=False)).plan(threads=1)
    delays = experiment.bind_delays(problem.num_clients)
    journal = Journal.create(None, {})  # which is never committed: nobody reads it
    try:
        simulation = Simulation(problem, delays, plan, journal, observer=watch.before_merge)
        most = MOST_EVENTS * (experiment.budget.updates or 1)
        for _ in range(most):
            if watch.ended or simulation.advance(1):
                break
            watch.measure_if_due()
        watch.measure_if_due()
        verdict, reason = simulation.state.verdict if simulation.finished else ("finished", "")
        if not simulation.finished and not watch.ended:
            reason = f"it was given up after {most} arrivals and timers"
        return watch.outcome(verdict, reason, simulation.state.updates, simulation.state.elapsed)
    finally:
        journal.close()


class Spent(Record):
    """What a run had cost at a merge."""

    time: float
    bytes: int
    energy: float


class TargetWatch:
    """Measures the model after every so many merged updates, as an `Evaluation` of updates does, and notes the targets.

    A merge observer is called before the merge is carried out, so a model is measured after the advance that made it,
    or before the next merge of the same advance.
    """

    def __init__(self, problem: Problem, targets: Targets, every: int) -> None:
        self.diverged = False
        self.reached: Spent | None = None
        self.worst_reached: Spent | None = None
        self._problem = problem
        self._targets = targets
        self._every = every
        self._updates = 0
        self._due: Spent | None = None
        self._execution: Execution | None = None
        self._left = self._worst_left = 1.0
        self._lefts: list[float] = []  # the least so far, at each measurement
        self._stalled = False

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to learn from this run."""
        return self.diverged or self._stalled or (self.reached is not None and self.worst_reached is not None)

    def before_merge(self, execution: Execution, merge: Merge) -> None:
        """Note what the run has cost, if the model that this merge makes is to be measured."""
        self.measure_if_due()
        before, self._updates = self._updates, self._updates + len(merge.tickets)
        if self._updates // self._every > before // self._every:
            ledger = execution.ledger
            self._execution = execution
            self._due = Spent(execution.now, ledger.bytes_down + ledger.bytes_up, ledger.energy)

    def measure_if_due(self) -> None:
        """Measure the model that the last merge left, if it is to be."""
        spent, execution = self._due, self._execution
        if spent is None or execution is None or self.ended:
            return
        self._due = None
        losses = self._problem.client_losses(execution.vectors.params)
        left = self._targets.left(float(np.mean(losses)))
        if not left <= DIVERGED:
            self.diverged = True
            return
        loss, worst = float(np.mean(losses)), loss_of_worst_tenth(losses)
        self._left = min(self._left, left)
        self._worst_left = min(self._worst_left, self._targets.worst_left(worst))
        if self.reached is None and loss <= self._targets.level:
            self.reached = spent
            self._lefts.clear()  # from now on, of the worst clients
        if self.worst_reached is None and worst <= self._targets.worst_level:
            self.worst_reached = spent
        self._lefts.append(self._left if self.reached is None else self._worst_left)
        self._stalled = len(self._lefts) > STALLED and self._lefts[-1] > (1 - GAIN) * self._lefts[-1 - STALLED]

    def outcome(self, verdict: str, reason: str, updates: int, elapsed: float) -> RunOutcome:
        """What is kept of the run, which ended with this verdict of the engine."""
        spent = self.reached
        if spent is not None:
            word, reason = "reached", ""
        elif self.diverged or verdict == "diverged":
            word, reason = "diverged", reason or f"its loss rose to {DIVERGED:g} times that of the first model"
        else:
            word = "not reached"
            if self._stalled:
                gained = f"gained less than {100 * GAIN:g} % of what was left in {STALLED} measurements"
                reason = f"given up after {updates} updates: it {gained}"
        return RunOutcome(
            word,
            reason,
            None if spent is None else spent.time,
            None if spent is None else spent.bytes,
            None if spent is None else spent.energy,
            None if self.worst_reached is None else self.worst_reached.time,
            self._left if isfinite(self._left) else None,
            self._worst_left if isfinite(self._worst_left) else None,
            updates,
            elapsed,
        )
