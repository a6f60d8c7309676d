"""What ways of choosing clients buy and cost: a table and sentences for the terminal."""

from __future__ import annotations

from math import isfinite

from rich.table import Table

from asyncfed.analysis.fairness import MEASURES, Effect, Fairness
from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.selections import BASELINE, SELECTIONS
from asyncfed.report.terminal.run_tables import TIGHT
from asyncfed.report.units import describe_target, format_quantity, format_ratio

HEADS = {
    "time_to_target": "time to\ntarget",
    "mean_loss": "mean\nloss",
    "worst_loss": "worst\ntenth",
    "loss_spread": "spread",
    "least_share": "least\nshare",
    "jain_index": "even-\nness",
    "not_merged": "not\nmerged",
}


def fairness_table(fairness: Fairness) -> Table:
    """A row a selection: the mean over seeds of every measure."""
    seeds = len(fairness.seeds)
    title = (
        f"{fairness.comparison.name}: {format_quantity('elapsed', fairness.seconds)} of virtual time each, "
        f"{seeds} seed{'s'[: seeds > 1]}"
    )
    caption = (
        f"time to target: {describe_target(fairness.comparison)}. Losses and their spread (standard deviation) are "
        f"over clients, on their {fairness.part} rows. Least share: merges of the least heard client, 1 being the mean "
        "of all. Evenness: Jain's index of merges. Not merged: tickets lost, dropped, cancelled or still out."
    )
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", **TIGHT)
    table.add_column("selection", style="bold", no_wrap=True)
    for name in MEASURES:
        table.add_column(HEADS[name], justify="right")
    for name in fairness.selections:
        table.add_row(name, *(_cell(fairness, name, measure) for measure in MEASURES))
    return table


def _cell(fairness: Fairness, name: str, measure: str) -> str:
    values = fairness.measured[name][measure]
    known = int(sum(isfinite(value) for value in values))
    if not known:
        return "never" if measure == "time_to_target" else "–"
    found = fairness.mean(name, measure)
    if measure == "time_to_target":
        missed = len(values) - known
        return format_quantity("elapsed", found.mean) + (f", {missed} never" if missed else "")
    return f"{100 * found.mean:.0f} %" if measure == "not_merged" else format_number(found.mean)


def fairness_words(fairness: Fairness) -> list[str]:
    """For each selection what it bought and what it cost, as far as the seeds can tell."""
    if len(fairness.seeds) < 2:
        return ["One seed tells nothing apart from chance: use --seeds 5 or more before believing any difference."]
    lines = []
    for name in fairness.selections:
        if name == BASELINE:
            continue
        effects = fairness.effects(name)
        better, worse = ([_phrase(e) for e in effects if e.verdict == v] for v in ("better", "worse"))
        bought = "; ".join(better) if better else "nothing that these seeds can tell"
        cost = "; ".join(worse) if worse else "nothing that these seeds can tell"
        lines.append(f"{name} ({SELECTIONS[name]}). Bought: {bought}. Cost: {cost}.{_left_out(fairness, name)}")
    lines.append(
        f"All against {BASELINE}, paired by seed; in brackets 95 % confidence intervals, one by one: of many "
        "comparisons some come out by chance. It holds for this experiment, its delays and its data."
    )
    return lines


def _phrase(effect: Effect) -> str:
    words, found = MEASURES[effect.measure], effect.interval
    if words.compared_by == "ratio" and 0.5 < found.mean < 2.0:
        mean, low, high = (f"{100 * (ratio - 1):+.1f}" for ratio in (found.mean, found.low, found.high))
        return f"{words.words} {mean} % ({low} to {high} %)"
    if words.compared_by == "ratio":
        ends = f"{format_ratio(found.low)}–{format_ratio(found.high)}"
        return f"{words.words} {format_ratio(found.mean)} times ({ends})"
    if effect.measure == "not_merged":
        return f"{words.words} {100 * found.mean:+.1f} points ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    return f"{words.words} {found.mean:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def _left_out(fairness: Fairness, name: str) -> str:
    seeds = fairness.seeds
    gone = [seed for seed in seeds if fairness.outcomes[name][seed].run.verdict == "diverged"]
    missed = [
        seed
        for seed, value in zip(seeds, fairness.measured[name]["time_to_target"], strict=True)
        if not isfinite(value) and seed not in gone
    ]
    words = f" It diverged with {len(gone)} of {len(seeds)} seeds." if gone else ""
    return words + (f" With {len(missed)} of {len(seeds)} seeds it did not reach the target." if missed else "")
