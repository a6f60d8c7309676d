"""A strategy with a codec on a link: the experiment of one cell of the study."""

from __future__ import annotations

from asyncfed.communication.codecs import CODECS
from asyncfed.communication.problems import LOCAL_STEPS, PROBLEMS, StudyProblem
from asyncfed.communication.strategies import NUM_CLIENTS, STRATEGIES
from asyncfed.core.record import Record
from asyncfed.core.types import Budget
from asyncfed.delays import Constant, DelayDescription, Delays, LogNormal, PerWork
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.stopping import Stopping
from asyncfed.experiment import Experiment, to_toml

BYTES_PER_MEGABIT = 1e6 / 8
DOWN_PER_UP = 10.0
"""How many times as fast as its upload a client's download is."""

SPREAD = 0.25
"""Of the logarithm of the seconds that a ticket's computing takes."""

LINKS: dict[str, tuple[str, float]] = {
    "1_mbit": ("1 Mbit/s up, 10 Mbit/s down", 1.0),
    "10_mbit": ("10 Mbit/s up, 100 Mbit/s down", 10.0),
}
"""The clients' links, by name, with a line about each and their megabits a second up; the slowest first."""


class Cell(Record):
    """A problem, a link, a strategy and a codec, by their names.

    >>> Cell("digits", "1_mbit", "fedbuff", "top_k_ef").key
    'digits/1_mbit/fedbuff/top_k_ef'
    """

    problem: str
    link: str
    strategy: str
    codec: str

    @property
    def key(self) -> str:
        """What it is called in files."""
        return f"{self.problem}/{self.link}/{self.strategy}/{self.codec}"


def _delays(problem: StudyProblem, link: str) -> DelayDescription:
    up = LINKS[link][1] * BYTES_PER_MEGABIT
    down, computing = DOWN_PER_UP * up, LogNormal(median=problem.seconds, sigma=SPREAD)
    delays = Delays(compute=computing, bandwidth_up=Constant(value=up), bandwidth_down=Constant(value=down))
    return PerWork(delays=delays, steps=LOCAL_STEPS)


def cell_experiment(cell: Cell, rate: float, seed: int, target: float | None = None, longer: float = 1.0) -> Experiment:
    """The run of a cell, until its loss is at the target or its updates are spent.

    Args:
        cell: which.
        rate: the learning rate.
        seed: of everything random.
        target: the loss at which it stops; None to go on.
        longer: how many times the problem's number of updates it may merge.
    """
    problem, codec = PROBLEMS[cell.problem], CODECS[cell.codec]
    work = problem.work(rate, codec.uplink)
    return Experiment(
        name=cell.key.replace("/", "-"),
        seed=seed,
        num_clients=NUM_CLIENTS,
        data=problem.data,
        split=problem.split,
        holdout=problem.holdout,
        dtype=problem.dtype,
        model=problem.model,
        strategy=STRATEGIES[cell.strategy].make(work),
        delays=_delays(problem, cell.link),
        budget=Budget(updates=int(longer * codec.sends * problem.most_updates)),
        stopping=None if target is None else Stopping(metric="objective", target=target),
        evaluation=Evaluation(every=problem.measure_every, unit="update", distance=False),
    )


def cell_toml(cell: Cell, rate: float, seed: int) -> str:
    """The run of a cell as TOML, without the target: `asyncfed run cell.toml` spends all its updates."""
    return to_toml(cell_experiment(cell, rate, seed))
