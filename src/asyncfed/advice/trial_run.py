"""One simulated run of a search: its loss against time, bytes and energy, and what it did to the worst clients."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np

from asyncfed.analysis.client_table import worst_tenth
from asyncfed.core.errors import JournalError
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Merge
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.execution import Execution
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem, ScoresClients
from asyncfed.runs.simulate import simulate
from asyncfed.store.ledger import Ledger

GROWTH = 1.03
"""Models are measured at growing distances, so that a cost is known to 3 % whether a run is short or long."""


class TrialRun(Record):
    """What a search remembers of a run. All columns have one value for each measurement, the first before training.

    Args:
        verdict: how the run ended: "finished", "diverged" or "starved".
        updates: merged updates so far.
        elapsed: virtual seconds.
        bytes: down and up.
        energy: joules of computing.
        loss: the metric that is to reach the target; None where it is not finite.
        total_bytes: bytes of the whole run.
        total_energy: joules of the whole run.
        worst_loss: mean loss of the worst tenth of the clients with the last model, on the rows the target is about.
        worst_test_loss: the same on test rows, if there are any, else on those.
        worst_test_accuracy: the share of right answers of the tenth of the clients with the fewest, on the same rows;
            None where targets are no labels.
        jain_index: Jain's index of participation, 1 when all clients were merged equally often.
    """

    verdict: str
    updates: tuple[int, ...]
    elapsed: tuple[float, ...]
    bytes: tuple[int, ...]
    energy: tuple[float, ...]
    loss: tuple[float | None, ...]
    total_bytes: int
    total_energy: float
    worst_loss: float | None
    worst_test_loss: float | None
    worst_test_accuracy: float | None
    jain_index: float

    @property
    def known_losses(self) -> np.ndarray:
        """The losses, infinite where they are not finite."""
        return np.array([np.inf if loss is None else loss for loss in self.loss])


def metric_of(problem: Problem) -> str:
    """What the target is about: the loss on held-out validation rows where there are any, else the objective."""
    parts = problem.parts if isinstance(problem, ScoresClients) else ()
    return "validation_loss" if "validation" in parts else "objective"


def simulate_trial(experiment: Experiment, problem: Problem) -> TrialRun:
    """Simulate an experiment and measure its model as often as a cost to 3 % needs.

    The run itself measures at its start and its end only; the models in between are kept when they are merged and
    measured afterwards, by the one metric that counts.
    """
    watched = MergeWatch()
    plain = replace(experiment, evaluation=Evaluation(every=0, distance=False))
    run = simulate(plain, problem=problem, threads=1, observer=watched)
    if not run.finished:
        raise KeyboardInterrupt
    final = run.journal.checkpoint()
    if final is None:
        raise JournalError("a simulated run ended without a model. Report this: it cannot happen.")
    ledger, params = final[0]["ledger"], final[1]["params"]
    measure = _measure(problem)
    first = measure(problem.init(experiment.seed, how=experiment.init))
    watched.end(params)
    losses = [_finite(loss) for loss in (first, *map(measure, watched.models))]
    return TrialRun(
        run.verdict,
        (0, *(point.updates for point in watched.points)),
        (0.0, *(point.elapsed for point in watched.points)),
        (0, *(point.bytes for point in watched.points)),
        (0.0, *(point.energy for point in watched.points)),
        tuple(losses),
        int(ledger["bytes_down"] + ledger["bytes_up"]),
        float(ledger["energy"]),
        *_worst(problem, params),
        Ledger.from_snapshot(ledger).jain_index(),
    )


class Spent(Record):
    """What a run has cost up to a merge."""

    updates: int
    elapsed: float
    bytes: int
    energy: float


class MergeWatch:
    """A merge observer that keeps models at growing distances: what follows merges 1, 2, 3, ... and then every 3 %.

    It is called before a merge is carried out, so the model it sees is what the merge before it left.
    """

    def __init__(self) -> None:
        self.points: list[Spent] = []
        self.models: list[np.ndarray] = []
        self._last: Spent | None = None
        self._due = 1.0

    def __call__(self, execution: Execution, merge: Merge) -> None:
        last, ledger = self._last, execution.ledger
        if last is not None and last.updates >= self._due:
            self._keep(last, execution.vectors.params)
        spent = ledger.bytes_down + ledger.bytes_up
        self._last = Spent(execution.updates, execution.now, spent, ledger.energy)

    def end(self, params: np.ndarray) -> None:
        """The model that the last merge left."""
        if self._last is not None:
            self._keep(self._last, params)

    def _keep(self, spent: Spent, params: np.ndarray) -> None:
        self.points.append(spent)
        self.models.append(params.copy())
        self._due = max(spent.updates + 1.0, spent.updates * GROWTH)


def _measure(problem: Problem) -> Callable[[np.ndarray], float]:
    """The metric of a model, at the cost of its own rows alone."""
    metric = metric_of(problem)
    if metric == "validation_loss" and isinstance(problem, ScoresClients):
        scoring = problem

        def mean_over_clients(params: np.ndarray) -> float:
            scores = scoring.client_scores(params, "validation", 1)
            return float(np.mean(scores.loss[scores.rows > 0]))

        return mean_over_clients
    return lambda params: float(problem.evaluate(params, threads=1)[metric])


def _worst(problem: Problem, params: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Loss of the worst tenth of the clients on the rows of the target and on test rows, and their accuracy there."""
    if not isinstance(problem, ScoresClients):
        return None, None, None
    decides = "validation" if "validation" in problem.parts else "training"
    reported = problem.client_scores(params, "test" if "test" in problem.parts else decides, 1)
    loss = problem.client_scores(params, decides, 1).loss
    accuracy = None
    if reported.accuracy is not None:
        accuracy = _finite(float(np.mean(reported.accuracy[worst_tenth(-reported.accuracy)])))
    return _mean_of_worst(loss), _mean_of_worst(reported.loss), accuracy


def _mean_of_worst(loss: np.ndarray) -> float | None:
    marked = worst_tenth(loss)
    return _finite(float(np.mean(loss[marked]))) if marked.any() else None


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
