"""Progress bars for work that takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from asyncfed.core.types import Budget


class Budgeted(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def budget(self) -> Budget: ...


class HowFar(Protocol):
    @property
    def rounds(self) -> int: ...
    @property
    def updates(self) -> int: ...
    @property
    def elapsed(self) -> float: ...
    @property
    def objective(self) -> float: ...


@contextmanager
def run_bar(console: Console, experiment: Budgeted, clock: str = "virtual") -> Iterator[Callable[[HowFar], None]]:
    """A bar with loss and time on the named clock; gives the function that a run tells how far it is."""
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
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, loss=float("nan"), clock=0.0)

        def watch(now: HowFar) -> None:
            done = {"rounds": now.rounds, "updates": now.updates, "elapsed": now.elapsed}[unit]
            progress.update(task, completed=done, loss=now.objective, clock=now.elapsed)

        yield watch


@contextmanager
def counting_bar(console: Console, words: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar that counts to `total`."""
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done: progress.update(task, completed=done)
