"""Progress bars for work that takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from asyncfed.core.types import Budget


class BudgetedExperiment(Protocol):
    """An experiment with a name and a budget, of which a bar shows the share that is done."""

    @property
    def name(self) -> str: ...
    @property
    def budget(self) -> Budget: ...


class RunProgress(Protocol):
    """How far a run is, on all that a bar can show."""

    @property
    def rounds(self) -> int: ...
    @property
    def updates(self) -> int: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def objective(self) -> float: ...


@contextmanager
def run_bar(
    console: Console,
    experiment: BudgetedExperiment,
    clock: str = "virtual time",
    who: Callable[[], str] | None = None,
) -> Iterator[Callable[[RunProgress], None]]:
    """A bar with the loss and the time of the run; yields the function to call with the run's progress.

    Args:
        console: where it is drawn; nothing is if that is no terminal.
        experiment: what is run.
        clock: what the run's time is called.
        who: says who computes at the moment, where that may change.
    """
    budget = experiment.budget
    unit, total = next(
        (unit, float(limit))
        for unit, limit in (("rounds", budget.rounds), ("updates", budget.updates), ("elapsed", budget.elapsed))
        if limit is not None
    )
    columns = (
        TextColumn(experiment.name),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} " + ("s" if unit == "elapsed" else unit)),
        TextColumn("loss {task.fields[loss]:.4g}  " + clock + " {task.fields[clock]:,.1f} s"),
        TextColumn("{task.fields[who]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total, loss=float("nan"), clock=0.0, who="")

        def watch(now: RunProgress) -> None:
            done = {"rounds": now.rounds, "updates": now.updates, "elapsed": now.elapsed}[unit]
            working = "" if who is None else who()
            progress.update(task, completed=done, loss=now.objective, clock=now.elapsed, who=working)

        yield watch


@contextmanager
def terminal_run_bar(experiment: BudgetedExperiment) -> Iterator[Callable[[RunProgress], None] | None]:
    """A bar for a run of a script: on standard error if that is a terminal; else there is none, and None is yielded."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with run_bar(console, experiment) as watch:
        yield watch


@contextmanager
def counting_bar(console: Console, words: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar that counts to `total`; yields the function to call with the number done, and a new total if it changed."""
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, total=None: progress.update(task, completed=done, total=total)


@contextmanager
def reading_bar(console: Console, words: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar at once, moving to and fro until it is known how much there is to read.

    Yields the function to call with a path, the bytes read and the bytes there are.
    """
    columns = (SpinnerColumn(), TextColumn(words), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def watch(path: str, done: int, total: int) -> None:
            # What follows the reading takes time too, so a bar that is full would be wrong.
            progress.update(task, completed=done, total=total if done < total else None)

        yield watch
