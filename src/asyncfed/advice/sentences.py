"""A recommendation in words: sentences and a table, for the terminal, the page and `print`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from asyncfed.advice.finalists import DEFAULT
from asyncfed.advice.recommendation import Recommendation, settings_text
from asyncfed.advice.scoring import Aim
from asyncfed.advice.search_space import RATE_FACTORS
from asyncfed.analysis.plain_text import format_number, text_table
from asyncfed.analysis.statistics import Interval

COSTS: dict[Aim, str] = {
    "time": "virtual time to the target",
    "bytes": "bytes to the target",
    "energy": "energy to the target",
    "worst_clients": "loss of the worst tenth of the clients",
}


def sentences(advice: Recommendation) -> list[str]:
    """What is recommended, what it saves, what may be as good, and what it costs in other respects."""
    winner = advice.finalists[advice.winner]
    found = [f"Recommended: {advice.winner} ({settings_text(winner.settings)})."]
    found.append(_against_synchronous(advice))
    if advice.winner != DEFAULT:
        found.append(_saving(advice, DEFAULT, "synchronous FedAvg with default settings"))
    others = advice.not_distinguishable
    if others:
        found.append(f"Not distinguishable from it with these seeds: {', '.join(others)}.")
    else:
        found.append("Every other finalist needs more, the interval excluding 1, or missed the target more often.")
    if advice.winner != advice.baseline:
        found.append(_other_costs(advice))
    found += _end_of_range(advice)
    if advice.missed(advice.winner):
        found.append(
            f"It missed the target with {advice.missed(advice.winner)} of {len(advice.seeds)} seeds within the budget; "
            "give a longer --budget before relying on this."
        )
    return found


def target_sentence(advice: Recommendation) -> str:
    """What was to be reached, and by how many runs it was found."""
    target = advice.target
    return (
        f"Target: {target.metric} {format_number(target.level)}, {target.progress:.0%} of the way from "
        f"{format_number(target.start)} to {format_number(target.best)}, the best that any run reached. "
        f"{advice.num_runs} simulated runs of {format_number(advice.budget)} virtual seconds at most; finalists over "
        f"{len(advice.seeds)} seeds that the search has not seen."
    )


def interval_text(ratio: Interval) -> str:
    """A ratio with its 95 % interval.

    >>> interval_text(Interval(0.5, 0.4, 0.625, 8))
    '0.5 (0.4 to 0.625)'
    """
    return f"{format_number(ratio.mean)} ({format_number(ratio.low)} to {format_number(ratio.high)})"


def finalist_rows(advice: Recommendation) -> list[dict[str, str]]:
    """A row for each finalist, the best first."""
    return [_row(advice, label) for label in advice.ranking]


def plain_text(advice: Recommendation) -> str:
    """The recommendation as text without colours."""
    rows = finalist_rows(advice)
    table = text_table("finalists", list(rows[0]), [list(row.values()) for row in rows], target_sentence(advice))
    settings = [f"{label}: {settings_text(advice.finalists[label].settings)}" for label in advice.ranking]
    return "\n".join([*sentences(advice), "", table, "", *settings, *advice.notes])


def _end_of_range(advice: Recommendation) -> list[str]:
    """A sentence if the winner's rate is the smallest or largest that was searched, so that a better one may exist."""
    rate, own = advice.finalists[advice.winner].strategy.work.learning_rate, advice.experiment.strategy.work
    factor = rate / own.learning_rate
    if RATE_FACTORS[0] < factor < RATE_FACTORS[-1]:
        return []
    end = "smallest" if factor < 1 else "largest"
    return [f"Its rate is the {end} that was searched; ask again with --lr {format_number(rate)} to search around it."]


def _row(advice: Recommendation, label: str) -> dict[str, str]:
    row = {"finalist": f"{label} *" if label == advice.winner else label}
    costs: Mapping[str, np.ndarray] = {
        "time, s": advice.costs(label, "elapsed"),
        "MB": advice.costs(label, "bytes") / 1e6,
        "kJ": advice.costs(label, "energy") / 1e3,
    }
    sign = ">" if advice.missed(label) else ""
    row |= {name: sign + format_number(float(np.mean(values))) for name, values in costs.items()}
    row["ratio to fedavg"] = "1" if label == advice.baseline else interval_text(advice.ratio(label, advice.baseline))
    worst = advice.worst_accuracy(label)
    row["worst tenth"] = format_number(float(np.mean(advice.worst_losses(label))))
    if worst == worst:
        row["worst accuracy"] = f"{worst:.1%}"
    return row | {"Jain": format_number(advice.jain_index(label))}


def _against_synchronous(advice: Recommendation) -> str:
    if advice.beats_synchronous:
        return _saving(advice, advice.baseline, "synchronous FedAvg with its own best settings")
    best = advice.ranking[0]
    others = [label for label in advice.ranking if label not in (advice.baseline, DEFAULT)]
    if best in (advice.baseline, DEFAULT) and others:
        best = others[0]
    ratio = f" The nearest, {best}, has a ratio of {interval_text(advice.ratio(best, advice.baseline))}."
    return f"Nothing beats synchronous FedAvg with its own best settings in {COSTS[advice.aim]}." + ratio


def _saving(advice: Recommendation, other: str, words: str) -> str:
    ratio, missed = advice.ratio(advice.winner, other), advice.missed(other)
    needs = f"It needs {format_number(ratio.mean)} times the {COSTS[advice.aim]}"
    if advice.aim == "worst_clients":
        needs = f"It has {format_number(ratio.mean)} times the {COSTS[advice.aim]}"
    elif missed:
        needs = f"It needs at most {format_number(ratio.mean)} times the {COSTS[advice.aim]}"
    bound = f"95 % interval {format_number(ratio.low)} to {format_number(ratio.high)}"
    late = f"; that missed the target with {missed} of {len(advice.seeds)} seeds" if missed else ""
    sure = "" if ratio.high < 1 or ratio.low > 1 else "; no difference is certain"
    return f"{needs} of {words} ({bound}{late}{sure})."


def _other_costs(advice: Recommendation) -> str:
    """What the winner takes in those respects that were not the aim."""
    winner, parts = advice.winner, []
    names: dict[Aim, str] = {"time": "virtual time", "bytes": "bytes", "energy": "energy"}
    for aim, name in names.items():
        if aim != advice.aim:
            parts.append(f"{interval_text(advice.ratio(winner, advice.baseline, aim))} times the {name}")
    if advice.aim != "worst_clients":
        ratio = interval_text(advice.ratio(winner, advice.baseline, "worst_clients"))
        parts.append(f"{ratio} times the loss of the worst tenth of the clients")
    jain = f"Jain's index of participation {format_number(advice.jain_index(winner))}"
    beside = f"{format_number(advice.jain_index(advice.baseline))}"
    return f"Against synchronous FedAvg it has {', '.join(parts)}; {jain}, there {beside}."
