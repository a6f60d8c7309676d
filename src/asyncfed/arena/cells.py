"""The cells of the arena: a problem, delays and a split each, and the experiment of a strategy in one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from asyncfed.arena.problems import PROBLEMS, SPLITS
from asyncfed.core.record import Record, replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, DelayDescription, Delays, PerWork
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment
from asyncfed.presets import delays_named
from asyncfed.runs.chosen_names import choose_names
from asyncfed.strategies.algorithm import algorithm_named
from asyncfed.strategies.protocol import Strategy
from asyncfed.strategies.schedules import ConstantRate, DelayAware

NUM_CLIENTS = 12
TICKETS = 6
"""Clients at work at once, or in a cohort: half of them."""

LOCAL_STEPS = 4
"""Mini-batch steps of a ticket that the delays are for; other tickets take longer or shorter in proportion."""

TRANSFER = Constant(value=0.25)
"""Seconds of a download, and of an upload, where the delays say nothing of either: local work would be free of them."""

PRESET_OF = {"equal": "none", "heavy_tail": "heavy_tailed"}
"""Delays whose name in the arena is another than among the presets."""

DELAY_NAMES = ("equal", "stragglers", "heavy_tail", "cluster", "hospital", "phones")
"""In the order in which they are listed."""


class Cell(Record):
    """A problem, delays and a split, by their names.

    >>> Cell("ridge", "stragglers", "skew").key
    'ridge/stragglers/skew'
    """

    problem: str
    delays: str
    split: str

    @property
    def key(self) -> str:
        """What it is called in files."""
        return f"{self.problem}/{self.delays}/{self.split}"


def arena_cells(problems: Iterable[str], delays: Iterable[str], splits: Iterable[str]) -> list[Cell]:
    """All combinations, problem by problem; a name that there is not is refused."""
    chosen = [
        choose_names("arena", "problem", problems, PROBLEMS),
        choose_names("arena", "delays", delays, DELAY_NAMES),
        choose_names("arena", "split", splits, SPLITS),
    ]
    return [Cell(problem, delay, split) for problem in chosen[0] for delay in chosen[1] for split in chosen[2]]


@cache
def cell_delays(name: str) -> DelayDescription:
    """How long a ticket takes: the delays of this name for `LOCAL_STEPS` steps, others in proportion."""
    named = delays_named(PRESET_OF.get(name, name))
    if isinstance(named, Delays) and named.download == named.upload == Constant(value=0.0):
        named = replace(named, download=TRANSFER, upload=TRANSFER)
    return PerWork(delays=named, steps=LOCAL_STEPS)


def make_strategy(name: str, problem: str, rate: float, steps: int) -> Strategy:
    """An algorithm with its own settings, and this learning rate and local work.

    The rate is constant, but for the paper's own algorithms, whose rate falls with rounds and delays.
    """
    algorithm = algorithm_named(name)
    work = Work(steps=steps, batch_size=PROBLEMS[problem].batch_size, learning_rate=rate)
    schedule = DelayAware() if algorithm.family == "the paper's" else ConstantRate()
    return algorithm.make(TICKETS, work, schedule)


def base_experiment(cell: Cell, seed: int) -> Experiment:
    """A cell with some strategy and no end: what its data and first model follow from."""
    problem = PROBLEMS[cell.problem]
    return Experiment(
        name=f"{cell.problem}-{cell.delays}-{cell.split}",
        seed=seed,
        num_clients=NUM_CLIENTS,
        data=problem.data,
        split=problem.splits[cell.split],
        dtype=problem.dtype,
        model=problem.model,
        delays=cell_delays(cell.delays),
        budget=Budget(updates=problem.most_updates),
        evaluation=Evaluation(every=problem.measure_every, unit="update", distance=False),
    )


def cell_experiment(cell: Cell, strategy: Strategy, seed: int, seconds: float | None) -> Experiment:
    """A strategy in a cell, for so many virtual seconds at most; None for no such limit."""
    budget = Budget(updates=PROBLEMS[cell.problem].most_updates, elapsed=seconds)
    return replace(base_experiment(cell, seed), strategy=strategy, budget=budget)
