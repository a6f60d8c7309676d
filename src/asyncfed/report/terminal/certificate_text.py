"""A certificate on the terminal: the rule, the lights, the theorems."""

from __future__ import annotations

from math import isfinite
from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

MOST_CLIENTS = 12
CHANCE = (
    "Cohorts are drawn uniformly: differences between shares are chance, and there is no bias towards fast clients."
)
SHORT = {"the mean over runs": "mean", "every run": "every run"}
COLOURS = {"yes": "green", "no": "red", "unknown": "yellow"}


def certificate_text(certificate: Any, all_reasons: bool = False) -> Group:
    """What is run, then one table of lights, then one of theorems, then what was seen."""
    parts = (_rule(certificate), _lights(certificate), _theorems(certificate, all_reasons), _seen(certificate))
    return Group(*(part for each in parts for part in (each, Text())))


def _rule(certificate: Any) -> Text:
    setting = certificate.setting
    few, most = setting.fewest_steps, setting.most_steps
    steps = f"{most}" if few == most else f"{few} to {most}"
    return Text(
        f"{certificate.name}: {setting.rule.name} ({setting.rule.words})\n"
        f"effective step {setting.effective_step:.4g} per version: η = {setting.rule.server_step:g}, {steps} local "
        f"steps, rate {setting.learning_rate:g}"
    )


def _lights(certificate: Any) -> Table:
    table = Table("assumption", "", "", box=None, pad_edge=False)
    for light in certificate.lights:
        table.add_row(escape(light.question), f"[{COLOURS[light.state]}]{light.state}[/]", escape(light.answer))
    return table


def _theorems(certificate: Any, all_reasons: bool) -> Table:
    table = Table("theorem", "covers", "largest rate", "verdict", box=None, pad_edge=False)
    for g in certificate.guarantees:
        largest = (
            "" if g.missing or g.largest_rate is None else f"{'below ' if g.open_limit else ''}{g.largest_rate:.4g}"
        )
        table.add_row(
            g.name,
            SHORT[g.covers],
            largest,
            "[green]applies[/]" if g.applies else escape(_reasons(g.obstacles, all_reasons)),
        )
    return table


def _reasons(obstacles: tuple[str, ...], all_reasons: bool) -> str:
    if all_reasons:
        return f"no: {'; '.join(obstacles)}"
    more = len(obstacles) - 1
    return f"no: {obstacles[0]}" + (f" (and {more} more: --why)" if more else "")


def _seen(certificate: Any) -> Text:
    """What is guaranteed for the end, what was measured there, and what else could be had."""
    lines = [f"{g.name} guarantees {_end(g)} at the end" for g in certificate.guarantees if g.applies]
    followed = [run for run in certificate.runs if run.trajectory is not None]
    if certificate.path is not None and followed:
        promised, got = certificate.path.distance[-1], followed[0].trajectory.distances[-1]
        lines.append(
            f"{certificate.path.name} guarantees distance {_number(promised)} at the end of the first run, which ended "
            f"at {_number(got)}"
        )
    lines += _measured(certificate.runs, followed)
    best = certificate.admissible
    if best is None and not any(g.applies for g in certificate.guarantees):
        lines.append("no smaller rate alone would make a theorem apply")
    elif best is not None and not best.applies:
        lines.append(f"largest admissible rate: {best.advised_rate:.4g} ({best.name}); --lr theory runs with it")
    return Text("\n".join([*lines, *certificate.violations]))


def _measured(runs: Any, followed: Any) -> list[str]:
    ends = {
        "distance": [run.trajectory.distances[-1] for run in followed],
        "objective gap": [run.gap[-1] for run in runs if len(run.gap)],
        "objective gap of the averaged model": [run.averaged_gap[-1] for run in runs if len(run.averaged_gap)],
    }
    means = {name: (sum(values) / len(values), len(values)) for name, values in ends.items() if values}
    return [
        f"measured: {name} {_number(mean)} at the end{_over(count)}"
        for name, (mean, count) in means.items()
        if isfinite(mean)
    ]


def _over(runs: int) -> str:
    return f", mean over {runs} runs" if runs > 1 else ""


def _end(g: Any) -> str:
    parts = []
    if g.distance is not None:
        parts.append(f"distance {_number(g.distance[-1])}")
    if g.gap is not None:
        of = "" if g.averaging is None else " of the averaged model"
        parts.append(f"objective gap {_number(g.gap[-1])}{of}")
    return " and ".join(parts)


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e290 else "beyond all bounds"


def voices_text(voices: Any) -> Group:
    """Who is heard how often, foretold and counted, and how far that moves the optimum."""
    parts: list[Table | Text] = [_voices_table(voices)]
    by_cohorts = voices.prediction is not None and voices.prediction.dispatch == "cohort"
    if voices.bias is not None and voices.bias.applies and not by_cohorts:
        parts.append(
            Text(
                f"The objective that was really minimised has its optimum {_number(voices.bias.distance)} away from "
                f"the true one, where the true objective is {_number(voices.bias.gap)} too high."
            )
        )
    parts.append(Text(CHANCE if by_cohorts else voices.bias_note))
    parts.append(Text(f"Prediction: {voices.prediction_note}"))
    return Group(*parts)


def _voices_table(voices: Any) -> Table:
    columns = {
        "share foretold": None if voices.prediction is None else voices.prediction.share,
        "staleness foretold": None if voices.prediction is None else voices.prediction.staleness,
        "share of merges": voices.shares,
        "weight": voices.bias.weight if voices.bias is not None and voices.bias.applies else None,
    }
    known = {name: values for name, values in columns.items() if values is not None}
    table = Table("client", *known, box=None, pad_edge=False)
    count = len(next(iter(known.values()))) if known else 0
    order = sorted(range(count), key=lambda client: -next(iter(known.values()))[client])
    shown = order if count <= MOST_CLIENTS else [*order[: MOST_CLIENTS // 2], *order[-MOST_CLIENTS // 2 :]]
    for client in shown:
        table.add_row(str(client), *(f"{values[client]:.3g}" for values in known.values()))
    return table
