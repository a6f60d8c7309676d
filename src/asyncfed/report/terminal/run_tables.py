"""Tables of a run and of a comparison for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from asyncfed.analysis.convergence import judge_convergence
from asyncfed.analysis.filtered_updates import FilteredClient
from asyncfed.analysis.liar_influence import LiarInfluence
from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.protocols import AXES, Axis, Ratio, ReportedComparison, ReportedRun, check_label
from asyncfed.analysis.statistics import mean_interval
from asyncfed.report.filtered_table import TITLE, filtered_rows
from asyncfed.report.units import describe_target, format_quantity, format_ratio

TIGHT: dict[str, Any] = {"box": box.SIMPLE_HEAD, "show_edge": False, "padding": 0}  # seven columns in a terminal of 80
COLUMNS: dict[Axis, str] = {"round": "rounds", "elapsed": "virtual\ntime", "bytes": "bytes", "energy": "energy"}


def run_table(
    run: ReportedRun,
    digests: Mapping[str, str] | None = None,
    optimum: float | None = None,
    liars: LiarInfluence | None = None,
) -> Table:
    """How a run ended, what it reached and what it cost, line by line.

    Args:
        run: the run.
        digests: what two runs can be compared by, as hexadecimal digits by name; shown below the rest.
        optimum: the objective at the optimum, if it is known; shown beside the one that was reached.
        liars: how much liars had of the run, if there are any.

    Returns:
        A table of two columns, to be printed by rich.
    """
    table = Table(title=str(run.header["experiment"]["name"]), show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    loud = "red" if run.verdict == "diverged" else ""
    plain = run.reason.startswith((run.verdict, "converged", "stopped early"))
    words = run.reason if plain else f"{run.verdict}: {run.reason}"
    table.add_row("verdict", words, style=loud)
    convergence = judge_convergence(run)
    is_measured = set(run.evaluations) > {"updates", "version", "round", "elapsed"}  # not in private runs
    if run.verdict == "finished" and not convergence.ok and is_measured:
        table.add_row("not converged", convergence.words, style="yellow")
    rows = len(run.evaluations["round"])
    kept = run.kept if rows else 0  # a run stopped before its first measurement has kept nothing
    if kept < rows - 1:
        best = f"the best, of round {run.evaluations['round'][kept]}; measured below"
        table.add_row("model kept", best if kept else "the one before training: none was measurably better")
    for name, values in run.evaluations.items():
        if name not in ("updates", "version") and not name.endswith("_error") and len(values):
            clock = "time" if "live" in run.header else "virtual time"
            label = clock if name == "elapsed" else name.replace("_", " ")
            table.add_row(label, _measured(name, run.evaluations, kept, optimum))
    for name, text in _round_lines(run.rounds, int(run.header["num_clients"])):
        table.add_row(name, text)
    if liars is not None:
        table.add_row("liars", liars.sentence, style="yellow")
    for name, values in run.merge_info.items():
        if name != "version":
            shown = f"mean {format_number(float(np.nanmean(values)))}, last {format_number(float(values[-1]))}"
            table.add_row(f"rule: {name.replace('_', ' ')}", shown)
    for name, digest in (digests or {}).items():
        table.add_row(name, digest)
    return table


def filtered_table(clients: Sequence[FilteredClient]) -> Table:
    """A row a client whose updates were filtered, dropped or refused: how often, when last and why."""
    table = Table(title=TITLE, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    rows = filtered_rows(clients)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("client", "reason") else "right", overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    return table


def _measured(name: str, evaluations: Mapping[str, np.ndarray], row: int, optimum: float | None) -> str:
    """What was measured, with its standard error or the optimum's value, where they are known."""
    value = float(evaluations[name][row])
    if name == "elapsed":
        return format_quantity("elapsed", value)
    if name == "objective" and optimum is not None:
        return f"{value:.6g} (optimum {optimum:.6g})"
    error = evaluations.get(f"{name}_error")
    return format_number(value) if error is None else f"{format_number(value)} ± {format_number(float(error[row]))}"


def _round_lines(rounds: dict[str, np.ndarray], num_clients: int) -> list[tuple[str, str]]:
    if not len(rounds["round"]):
        return [("rounds", "none was completed")]
    last = {name: values[-1] for name, values in rounds.items()}
    mean, largest = float(rounds["staleness_mean"].mean()), rounds["staleness_max"].max()
    form = "f" if last["jain_index"] >= 0.01 else "g"
    down, up = (format_quantity("bytes", last[name]) for name in ("bytes_down", "bytes_up"))
    return [
        ("merged updates", format_number(int(last["updates"]))),
        ("staleness", f"mean {format_number(mean)}, largest {largest}"),
        ("sent down, up", f"{down}, {up}"),
        ("energy", format_quantity("energy", last["energy"])),
        _tickets_without_effect(last),
        ("took part", f"{_of_all(int(last['participants']), num_clients)}, Jain's index {last['jain_index']:.2{form}}"),
    ]


def _of_all(participants: int, num_clients: int) -> str:
    return f"{participants} clients" if participants == num_clients else f"{participants:,} of {num_clients:,} clients"


def _tickets_without_effect(last: Mapping[str, Any]) -> tuple[str, str]:
    """How many came back never, or in vain; those with nothing to send are named if there are any."""
    if last["skipped"]:
        return "lost, dropped, skipped", f"{last['lost']}, {last['dropped']}, {last['skipped']} tickets"
    return "lost, dropped", f"{last['lost']}, {last['dropped']} tickets"


def comparison_table(comparison: ReportedComparison, baseline: str) -> Table:
    """A row a strategy: where it ended, what the target cost it, and how many times faster than `baseline` it was.

    Costs are means over the seeds that reached the target; "x faster" is the paired geometric mean ratio of virtual
    times, the baseline's over the strategy's, with its 95 % confidence interval. Runs that could not be compared are
    named below.
    """
    check_label(baseline, comparison.labels)
    count = len(comparison.seeds)
    title = f"{comparison.name}: cost of {describe_target(comparison)}, {count} seed{'s'[: count > 1]}"
    faster = f"x faster: in virtual time than {baseline}; paired geometric mean (95 % confidence interval)"
    caption = "\n".join([faster, *comparison.notes])
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", **TIGHT)
    table.add_column("strategy", style="bold", no_wrap=True)
    for metric in shown_metrics(comparison):
        table.add_column(f"final\n{metric.replace('_', ' ')}", justify="right", overflow="fold")
    for axis in AXES:
        table.add_column(COLUMNS[axis], justify="right")
    table.add_column("x faster", justify="right", overflow="fold")
    for label in comparison.labels:
        table.add_row(*comparison_row(comparison, label, baseline))
    return table


def comparison_row(comparison: ReportedComparison, label: str, baseline: str) -> list[str]:
    """The cells of one strategy, as text."""
    costs = [_cost(comparison.time_to_target(label, axis), axis) for axis in AXES]
    faster = _times_faster(comparison, label, baseline)
    reached, *others = (_final(comparison, label, metric) for metric in shown_metrics(comparison))
    return [label, reached, *(text.partition(" ± ")[0] for text in others), *costs, faster]


def _times_faster(comparison: ReportedComparison, label: str, baseline: str) -> str:
    ratio = comparison.ratio(baseline, label, "elapsed")
    if label == baseline:
        return "baseline"
    costs = [comparison.time_to_target(name, "elapsed") for name in (label, baseline)]
    if not ratio.n and np.isfinite(costs).all(axis=0).any():
        return "–"  # the target was reached at no cost
    if not ratio.n and np.isfinite(costs[0]).any():
        return "no seed where both reached it"
    return describe_ratio(ratio)


def shown_metrics(comparison: ReportedComparison) -> list[str]:
    """The metrics whose last values are shown: what is compared, and how good the model is on test rows."""
    on_test = next((name for name in ("test_accuracy", "test_loss") if name in comparison.measured), None)
    return list(dict.fromkeys(name for name in (comparison.metric, on_test) if name is not None))


def describe_ratio(ratio: Ratio) -> str:
    """A ratio with its interval, and how many seeds it had to do without.

    >>> describe_ratio(Ratio(2.0, 1.5, 2.667, 4, 1))
    '2 (1.5–2.7), 1 seed left out'
    """
    if not ratio.n:
        return "target never reached"
    interval = f" ({format_ratio(ratio.low)}–{format_ratio(ratio.high)})" if isfinite(ratio.low) else ""
    missing = f", {ratio.left_out} seed{'s'[: ratio.left_out > 1]} left out" if ratio.left_out else ""
    return f"{format_ratio(ratio.mean)}{interval}{missing}"


def _final(comparison: ReportedComparison, label: str, metric: str) -> str:
    runs = comparison.runs[label].values()
    diverged = sum(run.verdict == "diverged" for run in runs)
    if diverged == len(runs):
        return "DIVERGED"
    final = mean_interval([run.final(metric) for run in runs if run.verdict != "diverged"])
    reach = f" ± {_one_digit(final.high - final.mean)}" if isfinite(final.high) else ""
    return f"{format_number(final.mean)}{reach}" + (f", {diverged} of {len(runs)} DIVERGED" if diverged else "")


def _one_digit(value: float) -> str:
    return f"{value:.1g}" if value < 10 else f"{value:,.0f}"


def _cost(values: np.ndarray, axis: Axis) -> str:
    reached = values[np.isfinite(values)]
    if not len(reached):
        return "never"
    missed = len(values) - len(reached)
    return format_quantity(axis, float(reached.mean())) + (f", {missed} never" if missed else "")
