"""What robust rules cost per merge: 1e6 parameters, a buffer of 10, against the weighted sum of a merge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from asyncfed.core.types import Merge, Work
from asyncfed.rules import (
    Arrival,
    Average,
    CenteredClipping,
    Ctma,
    GeometricMedian,
    Krum,
    Mean,
    Median,
    MultiKrum,
    NormBounded,
    Robust,
    RuleRun,
    ServerRule,
    TrimmedMean,
)
from asyncfed.runs.cores import usable_cores
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

GOAL = 3.0
RULES: dict[str, ServerRule] = {
    "average": Robust(aggregator=Average()),
    "median": Robust(aggregator=Median()),
    "trimmed mean": Robust(aggregator=TrimmedMean(liars=3)),
    "geometric median": Robust(aggregator=GeometricMedian()),
    "Krum": Robust(aggregator=Krum(liars=3)),
    "multi-Krum": Robust(aggregator=MultiKrum(liars=3)),
    "centred clipping": Robust(aggregator=CenteredClipping()),
    "CTMA": Robust(aggregator=Ctma(liars=3)),
    "norms bounded": NormBounded(),
}
WITH_GOAL = ("median", "trimmed mean")


def measure(num_params: int = 1_000_000, buffer_size: int = 10, repeats: int = 15) -> Outcome:
    """The least time of a merge by each rule; updates of equal weight, and of weights that follow their staleness.

    Judged by CPU time, all threads together, since the mean uses one thread and the others all cores: on a quiet
    machine their ratio on the wall is smaller.
    """
    chance = np.random.default_rng(0)
    params = chance.normal(size=num_params)
    lines, numbers = [], {}
    for form, stale in (("equal weights", 0), ("weights by staleness", 1)):
        arrivals = _arrivals(chance, params, buffer_size, stale)
        merge = Merge(tuple(a.ticket for a in arrivals), tuple(a.weight for a in arrivals))
        jobs = {"mean": _job(Mean(), params, arrivals, merge)}
        jobs |= {name: _job(rule, params, arrivals, merge) for name, rule in RULES.items()}
        times = best_in_turn(jobs, repeats)
        spent = {name: 1e3 * time.cpu for name, time in times.items()}
        numbers[form] = {name: {"cpu": spent[name], "wall": 1e3 * times[name].wall} for name in jobs}
        for name in RULES:
            ratio, has_goal = spent[name] / spent["mean"], name in WITH_GOAL
            measured = (
                f"{spent[name]:.1f} ms CPU/merge, mean {spent['mean']:.1f}; wall {numbers[form][name]['wall']:.0f}"
            )
            goal, met = (f"<= {GOAL:g}x", ratio <= GOAL) if has_goal else ("", None)
            lines.append(Line(f"{name} / mean, {form}", measured, ratio, goal, met))
    return Outcome(lines, {"ms_per_merge": numbers, "num_params": num_params, "buffer_size": buffer_size})


def _arrivals(chance: np.random.Generator, params: np.ndarray, count: int, stale: int) -> list[Arrival]:
    made = []
    for ticket in range(count):
        start, staleness = params - 0.01 * (ticket % 3), stale * (ticket % 3)
        model = start + chance.normal(size=params.size)
        weight = 1.0 / (count * (1 + staleness) ** 0.5)
        made.append(Arrival(ticket, ticket, weight, staleness, Work(), 1, 1, start, model))
    return made


def _job(rule: ServerRule, params: np.ndarray, arrivals: list[Arrival], merge: Merge) -> Callable[[], object]:
    run = RuleRun(rule, params, len(arrivals), usable_cores())
    return lambda: run.step(params, arrivals, merge, 0)
