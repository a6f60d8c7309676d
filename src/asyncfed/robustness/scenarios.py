"""Scenarios, a problem with a split and delays, and the experiment of a defence in one, with liars or without."""

from __future__ import annotations

from asyncfed.attacks import Liars
from asyncfed.core.record import UNSET, Record
from asyncfed.core.types import Budget
from asyncfed.delays import DelayDescription, Delays, Device, LogNormal, PerWork
from asyncfed.engine.evaluation import Evaluation
from asyncfed.experiment import Experiment
from asyncfed.problems import TrustedRows
from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.defences import DEFENCES, NUM_CLIENTS
from asyncfed.robustness.problems import LOCAL_STEPS, PROBLEMS

MEASURE_EVERY = 20
"""Merged updates from one measurement to the next."""

HONEST = "none"
"""The attack of cells in which nobody lies."""

_SECONDS = LogNormal(median=1.0, sigma=0.25)

DELAYS: dict[str, tuple[str, DelayDescription]] = {
    "equal": (
        "a ticket takes about 1 s, the same for all clients",
        PerWork(delays=Delays(compute=_SECONDS), steps=LOCAL_STEPS),
    ),
    "stragglers": (
        "a ticket takes about 1 s, but a fifth of the clients takes 10 times as long",
        PerWork(
            delays=Delays(compute=_SECONDS, devices=(Device(name="straggler", share=0.2, slowness=10.0),)),
            steps=LOCAL_STEPS,
        ),
    ),
}
"""How long tickets take, by name, with a line about each."""


class Scenario(Record):
    """A problem, a split and delays, by their names.

    >>> Scenario("svm", "iid", "equal").key
    'svm/iid/equal'
    """

    problem: str
    split: str
    delays: str

    @property
    def key(self) -> str:
        """What it is called in files."""
        return f"{self.problem}/{self.split}/{self.delays}"


class Cell(Record):
    """A defence against an attack by a share of the clients, in a scenario. Share 0 has the attack `HONEST`.

    >>> Cell(Scenario("svm", "iid", "equal"), "median", "sign_flip", 0.3).key
    'svm/iid/equal/median/sign_flip/0.3'
    """

    scenario: Scenario
    defence: str
    attack: str
    share: float

    @property
    def key(self) -> str:
        """What it is called in files."""
        return f"{self.scenario.key}/{self.defence}/{self.attack}/{self.share:g}"


def cell_experiment(cell: Cell, seed: int) -> Experiment:
    """The run of a cell with this seed."""
    problem, defence = PROBLEMS[cell.scenario.problem], DEFENCES[cell.defence]
    liars = UNSET if cell.attack == HONEST else Liars(attack=ATTACKS[cell.attack].attack, share=cell.share)
    return Experiment(
        name=cell.scenario.key.replace("/", "-"),
        seed=seed,
        num_clients=NUM_CLIENTS,
        data=problem.data,
        split=problem.splits[cell.scenario.split],
        holdout=problem.holdout,
        dtype=problem.dtype,
        model=problem.model,
        strategy=defence.make(problem.work),
        delays=DELAYS[cell.scenario.delays][1],
        budget=Budget(elapsed=problem.seconds),
        evaluation=Evaluation(every=MEASURE_EVERY, unit="update", distance=False),
        attack=liars,
        trusted=TrustedRows(rows=problem.trusted_rows) if defence.trusted else UNSET,
    )
