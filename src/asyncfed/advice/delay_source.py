"""The clients' delays for a search: by name, from a table of past job times, or from a recorded run."""

from __future__ import annotations

import csv
from pathlib import Path

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Work
from asyncfed.delays import DelayDescription, Delays, Job, PerWork
from asyncfed.delays.duration_trace import read_trace
from asyncfed.delays.recorded_jobs import recorded_jobs
from asyncfed.experiment import Experiment
from asyncfed.presets import delays_named
from asyncfed.problems.protocol import Problem
from asyncfed.runs.result import load_run

DURATIONS = "durations.csv"
"""What a recorded run's durations are written to, beside the recommendation, which names the file."""


def read_delays(source: DelayDescription | Path | str, work: Work, out_dir: Path) -> DelayDescription:
    """The delays that a source describes.

    Args:
        source: delays; or a name (see `presets.DELAYS`); or a .csv file with the columns `client` and `seconds`; or the
            file of a recorded run, whose durations are written to `out_dir`/durations.csv.
        work: the local work that the seconds of a .csv file are for.
        out_dir: the folder of the search.

    Returns:
        The delays. Those of a recorded run count for the local work that it had.
    """
    if not isinstance(source, str | Path):
        return source
    path = Path(source)
    if path.suffix == ".csv":
        read_trace(str(path), purpose=0)  # complains now, not in a worker
        return delays_of(work, Delays(trace=str(path)))
    if path.suffix == ".sqlite":
        return _of_recorded_run(path, out_dir)
    return delays_named(str(source))


def charge_for_work(experiment: Experiment, problem: Problem) -> DelayDescription:
    """The experiment's delays, as those of its own local work, if they do not depend on work themselves.

    Otherwise a search would find that as many local epochs as it may choose are best, because they cost nothing. Nor
    would "1 s each" be 1 s for work in steps, which `Delays` alone count as passes over a client's data.
    """
    delays = experiment.delays
    if isinstance(delays, PerWork):
        return delays
    model, work = delays.bind(problem.num_clients, experiment.seed), experiment.strategy.work
    rows = int(problem.num_examples[0])
    once, twice = (model.timing(0, 0, Work(epochs=epochs), rows).compute for epochs in (1, 2))
    if once != twice:
        return delays
    return delays_of(work, delays)


def delays_of(work: Work, delays: DelayDescription) -> PerWork:
    """These delays as those of this amount of local work."""
    return PerWork(delays=delays, epochs=work.epochs, steps=work.steps)


def _of_recorded_run(path: Path, out_dir: Path) -> DelayDescription:
    recorded = load_run(path)
    jobs = recorded_jobs(recorded.journal.event_rows())
    answered = [(client, job) for client in sorted(jobs) for job in jobs[client] if not job.lost]
    if not answered:
        raise ConfigError(f"{path} has no answered ticket, so there are no durations to use. Record a longer run.")
    out_dir.mkdir(parents=True, exist_ok=True)
    _write_durations(out_dir / DURATIONS, answered)
    total = sum(len(of_client) for of_client in jobs.values())
    delays = Delays(trace=str(out_dir / DURATIONS))
    if len(answered) < total:
        delays = replace(delays, dropout=1.0 - len(answered) / total)
    return delays_of(recorded.experiment.strategy.work, delays)


def _write_durations(path: Path, answered: list[tuple[int, Job]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds"])
        writer.writerows([client, repr(job.seconds)] for client, job in answered)
