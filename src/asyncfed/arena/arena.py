"""The arena as a whole: which entries there are, which are missing, and the processes that compute them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asyncfed.arena.cells import DELAY_NAMES, Cell, arena_cells
from asyncfed.arena.entry import FIRST_SEED, TUNING_SEEDS, Entry, EntryRequest, compute_entry
from asyncfed.arena.problems import PROBLEMS, SPLITS
from asyncfed.arena.results_store import ENTRIES, RUNS, arena_digest
from asyncfed.core.errors import ConfigError, did_you_mean
from asyncfed.core.record import Record, to_json
from asyncfed.runs.kept_results import ADVICE, Computation, KeptResults, Watcher
from asyncfed.runs.other_machines import OtherMachines
from asyncfed.runs.process_pool import Pool, open_pool
from asyncfed.runs.result_lines import end_last_line, read_lines
from asyncfed.strategies.algorithm import algorithms

BASELINE = "sync"
"""Synchronous FedAvg with equal weights: sets the time that a cell's runs may take, and what ratios are to."""

TRIALS, SEEDS = 6, 5
QUICK_TRIALS, QUICK_SEEDS = 4, 3
QUICK_PROBLEMS = ("quadratic", "logistic", "digits")
QUICK_DELAYS = ("stragglers",)
QUICK_SPLITS = ("skew",)
QUICK_STRATEGIES = ("sync", "fedavg", "scaffold", "scaffold_async", "async_sgd", "fedasync", "fedbuff", "ringmaster")


class ArenaPlan(Record):
    """What is computed.

    Args:
        cells: the cells.
        strategies: the algorithms' names, the baseline among them.
        num_trials: settings tried for each strategy and cell.
        seeds: the fresh seeds.
        quick: whether it is the small share that continuous integration computes.
    """

    cells: tuple[Cell, ...]
    strategies: tuple[str, ...]
    num_trials: int
    seeds: tuple[int, ...]
    quick: bool


class ArenaResults(Record):
    """A plan, and the entry of each cell and strategy, cell by cell.

    Args:
        plan: what was computed.
        entries: by cell, in the order of the plan, and in it by strategy.
        code: the digest of the code they were computed with.
    """

    plan: ArenaPlan
    entries: tuple[Entry, ...]
    code: str


def plan_arena(
    problems: Sequence[str] | None = None,
    delays: Sequence[str] | None = None,
    splits: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    seeds: int | None = None,
    trials: int | None = None,
    quick: bool = False,
) -> ArenaPlan:
    """The plan for these parts of the arena; what is None is all of it, or with `quick` a small share.

    Args:
        problems: names of `PROBLEMS`.
        delays: names of `DELAY_NAMES`.
        splits: names of `SPLITS`.
        strategies: names of algorithms; the baseline is always added.
        seeds: how many fresh seeds, 1 to 999.
        trials: how many settings are tried for each strategy and cell, at least 1.
        quick: the small share.

    Returns:
        The plan.

    Raises:
        ConfigError: there is no such part.
    """
    known = algorithms()
    names = list(strategies or (QUICK_STRATEGIES if quick else known))
    for name in names:
        if name not in known:
            raise ConfigError(f'There is no strategy "{name}". {did_you_mean(name, known)}')
    wanted = {BASELINE, *names}
    cells = arena_cells(
        problems or (QUICK_PROBLEMS if quick else PROBLEMS),
        delays or (QUICK_DELAYS if quick else DELAY_NAMES),
        splits or (QUICK_SPLITS if quick else SPLITS),
    )
    num_seeds = (QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds
    num_trials = (QUICK_TRIALS if quick else TRIALS) if trials is None else trials
    if not 1 <= num_seeds < TUNING_SEEDS[0] - FIRST_SEED:
        raise ConfigError(f"seeds is {num_seeds}; it must be 1 to {TUNING_SEEDS[0] - FIRST_SEED - 1}.")
    if num_trials < 1:
        raise ConfigError(f"trials is {num_trials}; a strategy needs at least 1.")
    return ArenaPlan(
        tuple(cells),
        tuple(name for name in known if name in wanted),
        num_trials,
        tuple(range(FIRST_SEED, FIRST_SEED + num_seeds)),
        quick,
    )


def run_arena(
    plan: ArenaPlan, folder: Path, workers: int, watch: Watcher | None = None, cluster: OtherMachines | None = None
) -> ArenaResults:
    """Compute what is missing, in so many processes, and answer with everything.

    Args:
        plan: what is to be computed.
        folder: where runs are kept.
        workers: how many processes; 1 computes in this one.
        watch: called after each entry.
        cluster: other machines that compute, in place of `workers`. They write no file: of an entry that they have not
            finished, no run is kept.

    Returns:
        The results: the same, whatever the number of processes, and however often it was stopped and begun again.
    """
    code = arena_digest()
    with open_pool(workers, ADVICE) if cluster is None else cluster.open_pool(advice=ADVICE) as pool:
        work = _Computation(plan, folder, code, pool, watch, writes_runs=cluster is None)
        limits = {entry.cell: entry.limit for entry in work.compute([(cell, BASELINE, None) for cell in plan.cells])}
        others = [(cell, name, limits[cell]) for cell in plan.cells for name in plan.strategies if name != BASELINE]
        work.compute(others)
    return ArenaResults(plan, tuple(work.done[cell, name] for cell in plan.cells for name in plan.strategies), code)


class _Computation:
    """The entries that are done, and what computes the others."""

    def __init__(
        self, plan: ArenaPlan, folder: Path, code: str, pool: Pool, watch: Watcher | None, writes_runs: bool
    ) -> None:
        self.done: dict[tuple[Cell, str], Entry] = {}
        self._plan = plan
        self._runs_file = folder / RUNS if writes_runs else None
        self._code = code
        self._pool = pool
        self._watch = watch
        self._entries = KeptResults(folder / ENTRIES, Entry, "entry")
        end_last_line(folder / RUNS)
        self._runs: dict[str, dict[str, Any]] = defaultdict(dict)
        for line in read_lines(folder / RUNS):
            self._runs[str(line.get("label"))][str(line.get("key"))] = line.get("outcome")

    def compute(self, wanted: Sequence[tuple[Cell, str, float | None]]) -> list[Entry]:
        """The entries of these cells and strategies, with this limit of time each."""
        self._entries.compute([self._computation(*one) for one in wanted], self._pool, self._finish)
        return [self.done[cell, name] for cell, name, _ in wanted]

    def _computation(self, cell: Cell, name: str, limit: float | None) -> Computation:
        request = EntryRequest(cell, name, limit, self._plan.num_trials, self._plan.seeds, self._code)
        key = hashlib.sha256(to_json(request).encode()).hexdigest()[:32]
        return Computation(key, compute_entry, (request, self._runs_file, self._runs.get(request.label, {})))

    def _finish(self, entry: Entry) -> None:
        self.done[entry.cell, entry.strategy] = entry
        if self._watch is not None:
            total = len(self._plan.cells) * len(self._plan.strategies)
            self._watch(len(self.done), total, f"{entry.cell.key} {entry.strategy}")
