"""The study as a whole: which entries there are, which are missing, and the processes that compute them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from asyncfed.communication.cells import LINKS
from asyncfed.communication.codecs import CODECS, NO_CODEC
from asyncfed.communication.entry import FIRST_SEED, TUNING_SEED, Entry, EntryRequest, compute_entry
from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.strategies import STRATEGIES
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, to_json
from asyncfed.runs.chosen_names import choose_names
from asyncfed.runs.kept_results import ADVICE, Computation, KeptResults, Watcher
from asyncfed.runs.process_pool import open_pool
from asyncfed.runs.run_names import code_digest

FORMAT = 1
"""Goes up when what a line holds, or how a run is measured, is changed."""

DECIDING_FILES = tuple(
    f"communication/{name}.py" for name in ("cells", "codecs", "entry", "measured_run", "problems", "strategies")
)
"""What a run of the study depends on beside the code of all simulated runs."""

ENTRIES = "entries.jsonl"

QUICK_SEEDS = 3
QUICK_PROBLEMS = ("regression",)
QUICK_STRATEGIES = ("fedbuff",)
QUICK_LINKS = ("1_mbit",)
QUICK_CODECS = ("top_k", "top_k_ef", "send_if")


class StudyPlan(Record):
    """What is computed.

    Args:
        requests: problem by problem, in each strategy by strategy, and in that codec by codec, the uncompressed first.
        quick: whether it is the small share that continuous integration computes.
    """

    requests: tuple[EntryRequest, ...]
    quick: bool


class StudyResults(Record):
    """A plan, the entry of each of its requests in their order, and the digest of the code they were computed with."""

    plan: StudyPlan
    entries: tuple[Entry, ...]
    code: str


def plan_study(
    problems: Sequence[str] | None = None,
    codecs: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
    seeds: int | None = None,
    quick: bool = False,
) -> StudyPlan:
    """The plan for these parts of the study; what is None is all of it, or with `quick` a small share.

    Args:
        problems: names of `PROBLEMS`.
        codecs: names of `CODECS`; sending everything, which they are compared with, is always added.
        strategies: names of `STRATEGIES`.
        links: names of `LINKS`.
        seeds: how many seeds, 1 to 999; None for as many as each problem says.
        quick: the small share.

    Raises:
        ConfigError: there is no such part.
    """
    most = TUNING_SEED - FIRST_SEED
    if seeds is not None and not 1 <= seeds <= most:
        raise ConfigError(f"seeds is {seeds}; it must be 1 to {most}.")
    chosen = choose_names("study", "codec", [NO_CODEC, *(codecs or (QUICK_CODECS if quick else CODECS))], CODECS)
    on = tuple(choose_names("study", "link", links or (QUICK_LINKS if quick else LINKS), LINKS))
    requests = []
    for problem in choose_names("study", "problem", problems or (QUICK_PROBLEMS if quick else PROBLEMS), PROBLEMS):
        count = seeds or (QUICK_SEEDS if quick else PROBLEMS[problem].seeds)
        used = tuple(range(FIRST_SEED, FIRST_SEED + count))
        wanted = strategies or (QUICK_STRATEGIES if quick else STRATEGIES)
        for strategy in choose_names("study", "strategy", wanted, STRATEGIES):
            own = [codec for codec in chosen if CODECS[codec].fits(problem)]
            requests += [EntryRequest(problem, strategy, codec, on, used) for codec in own]
    return StudyPlan(tuple(requests), quick)


def study_digest() -> str:
    """The digest of the code that the study's runs depend on."""
    return code_digest(f"communication {FORMAT}", DECIDING_FILES)


def run_study(plan: StudyPlan, folder: Path, workers: int, watch: Watcher | None = None) -> StudyResults:
    """Compute what is missing, in so many processes, and answer with everything.

    Args:
        plan: what is to be computed.
        folder: where results are kept.
        workers: how many processes; 1 computes in this one.
        watch: called after each entry.

    Returns:
        The results: the same, whatever the number of processes, and however often it was stopped and begun again.
    """
    code = study_digest()
    kept = KeptResults(folder / ENTRIES, Entry, "entry")
    done: dict[EntryRequest, Entry] = {}

    def finish(entry: Entry) -> None:
        done[entry.request] = entry
        if watch is not None:
            watch(len(done), len(plan.requests), entry.request.key)

    def wanted(request: EntryRequest) -> Computation:
        key = hashlib.sha256(f"{code} {to_json(request)}".encode()).hexdigest()[:32]
        return Computation(key, compute_entry, (request,))

    with open_pool(workers, ADVICE) as pool:
        kept.compute([wanted(request) for request in plan.requests], pool, finish)
    return StudyResults(plan, tuple(done[request] for request in plan.requests), code)
