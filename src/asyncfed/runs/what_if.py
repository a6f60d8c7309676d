"""What another strategy would have made of a run's clients: their recorded durations, its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from asyncfed.core.record import replace
from asyncfed.delays.recorded_delays import RecordedDelays
from asyncfed.delays.recorded_jobs import recorded_jobs
from asyncfed.problems.protocol import Problem
from asyncfed.runs.given_problem import stored_problem
from asyncfed.runs.header import check_same_problem
from asyncfed.runs.result import RecordedRun, load_run
from asyncfed.runs.simulate import simulate

if TYPE_CHECKING:
    from asyncfed.strategies.protocol import Strategy


def what_if(
    path: Path | str, strategies: Mapping[str, Strategy], *, problem: Problem | None = None, threads: int | None = None
) -> dict[str, RecordedRun]:
    """The recorded run under the name "recorded", then one simulated run a strategy, on the same clients.

    The k-th job of client c takes as long as the k-th job of client c took, and is lost if that was lost. All else is
    the recorded run's experiment.
    """
    recorded = load_run(path)
    experiment = recorded.experiment
    problem = stored_problem(experiment, problem)
    check_same_problem(recorded.header, problem, path)
    jobs = recorded_jobs(recorded.journal.event_rows())
    runs = {"recorded": recorded}
    for label, strategy in strategies.items():
        delays = RecordedDelays(jobs, problem.num_clients)
        other = replace(experiment, strategy=strategy, churn=())
        runs[label] = simulate(other, problem=problem, delays=delays, threads=threads)
    return runs
