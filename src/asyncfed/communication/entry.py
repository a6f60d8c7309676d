"""One strategy with one codec: its learning rate tuned on a seed of its own, then measured on every link and seed."""

from __future__ import annotations

from functools import lru_cache

from asyncfed.communication.cells import LINKS, Cell, cell_experiment
from asyncfed.communication.codecs import CODECS, NO_CODEC
from asyncfed.communication.measured_run import RunOutcome, Target, find_target, run_to_target
from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.strategies import STRATEGIES
from asyncfed.core.record import Record, replace
from asyncfed.problems.protocol import Problem

TUNING_SEED = 1000
FIRST_SEED = 1
"""Fresh seeds are counted from it; they stay below the tuning seed."""

TUNING_LINK = next(iter(LINKS))
FIRST_STRATEGY = next(iter(STRATEGIES))

KEPT_PROBLEMS = 16
"""Problems that a process keeps: all seeds of two problems, up to eight each."""

MISSED, WORTHLESS = 1e18, 1e24
"""Scores of trials that never reached the target (plus what was left, times `MISSED`), and of those that diverged."""


class EntryRequest(Record):
    """An entry that is to be computed.

    Args:
        problem: its name.
        strategy: its name.
        codec: its name.
        links: names of the links.
        seeds: the fresh seeds.
    """

    problem: str
    strategy: str
    codec: str
    links: tuple[str, ...]
    seeds: tuple[int, ...]

    @property
    def key(self) -> str:
        """What it is called in messages."""
        return f"{self.problem}/{self.strategy}/{self.codec}"


class Trial(Record):
    """A learning rate that was tried, and how its run ended on the tuning seed."""

    rate: float
    outcome: RunOutcome

    @property
    def score(self) -> float:
        """Bytes up to the target; behind all those that reached it, how far a run came. Less is better."""
        reached = self.outcome.reached
        if reached is not None:
            return float(reached.bytes_up)
        left = self.outcome.least_left
        return MISSED * (1.0 + left) if self.outcome.verdict == "never" and left is not None else WORTHLESS


class Entry(Record):
    """What a strategy with a codec did.

    Args:
        request: what was asked for.
        trials: in the order of the problem's rates.
        rate: that of the best trial.
        runs: of each link, in the order of the request, and in it of each seed.
        same_rate: of a codec that does not send every training, with the first strategy: its runs at the problem's
            small rate on the first link, and those with everything sent at the same rate. Empty for others.
    """

    request: EntryRequest
    trials: tuple[Trial, ...]
    rate: float
    runs: tuple[tuple[RunOutcome, ...], ...]
    same_rate: tuple[tuple[RunOutcome, ...], ...] = ()


def compute_entry(request: EntryRequest) -> Entry:
    """Try every learning rate of the problem, and measure the best."""
    rates = PROBLEMS[request.problem].rates
    trials = tuple(Trial(rate, _run(request, TUNING_LINK, rate, TUNING_SEED)) for rate in rates)
    best = min(trials, key=lambda trial: trial.score)
    runs = tuple(tuple(_run(request, link, best.rate, seed) for seed in request.seeds) for link in request.links)
    compared = CODECS[request.codec].sends < 1 and request.strategy == FIRST_STRATEGY
    return Entry(request, trials, best.rate, runs, _same_rate(request) if compared else ())


def _same_rate(request: EntryRequest) -> tuple[tuple[RunOutcome, ...], ...]:
    """With the codec and without it, at the small rate."""
    rate, link = PROBLEMS[request.problem].small_rate, request.links[0]
    return tuple(
        tuple(_run(replace(request, codec=codec), link, rate, seed, longer=2.0) for seed in request.seeds)
        for codec in (request.codec, NO_CODEC)
    )


def _run(request: EntryRequest, link: str, rate: float, seed: int, longer: float = 1.0) -> RunOutcome:
    problem, target = study_problem(request.problem, seed)
    cell = Cell(request.problem, link, request.strategy, request.codec)
    return run_to_target(cell_experiment(cell, rate, seed, target.level, longer), problem, target)


@lru_cache(maxsize=KEPT_PROBLEMS)
def study_problem(name: str, seed: int) -> tuple[Problem, Target]:
    """The problem of a seed, the same for all cells, and what is to be reached; made once by each process."""
    cell = Cell(name, TUNING_LINK, FIRST_STRATEGY, NO_CODEC)
    problem = cell_experiment(cell, PROBLEMS[name].rates[0], seed).problem()
    return problem, find_target(problem, seed, PROBLEMS[name].remaining)
