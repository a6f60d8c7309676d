"""A certificate on the terminal: the rule, the assumption checks, the theorems, and each client's influence."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from asyncfed.certificates import Certificate
    from asyncfed.certificates.best_clock import BestClock
    from asyncfed.certificates.client_influence import ClientInfluence
    from asyncfed.certificates.covered_settings import Advice
    from asyncfed.certificates.measurements import MeasuredRun
    from asyncfed.engine.trajectory import Trajectory
    from asyncfed.theory.guarantee import Guarantee

MOST_CLIENTS = 12
CHANCE = (
    "Cohorts are drawn uniformly: differences between shares are chance, and there is no bias towards fast clients."
)
SHORT = {"the mean over runs": "mean", "every run": "every run"}
COLOURS = {"yes": "green", "no": "red", "unknown": "yellow"}


def certificate_text(certificate: Certificate, all_reasons: bool = False) -> Group:
    """What is run, a table of assumption checks, a table of theorems, then what was measured."""
    parts = (
        _rule(certificate),
        _assumption_checks(certificate),
        _theorems(certificate, all_reasons),
        _results(certificate),
    )
    return Group(*(part for each in parts for part in (each, Text())))


def _rule(certificate: Certificate) -> Text:
    setting = certificate.setting
    few, most = setting.fewest_steps, setting.most_steps
    steps = f"{most}" if few == most else f"{few} to {most}"
    return Text(
        f"{certificate.name}: {setting.rule.name} ({setting.rule.words})\n"
        f"effective step {setting.effective_step:.4g} per version: η = {setting.rule.server_step:g}, {steps} local "
        f"steps, rate {setting.learning_rate:g}"
    )


def _assumption_checks(certificate: Certificate) -> Table:
    table = Table("assumption", "", "", box=None, pad_edge=False)
    for check in certificate.assumption_checks:
        table.add_row(escape(check.question), f"[{COLOURS[check.state]}]{check.state}[/]", escape(check.answer))
    return table


def _theorems(certificate: Certificate, all_reasons: bool) -> Table:
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


def _results(certificate: Certificate) -> Text:
    """What is guaranteed for the end, what was measured there, and which rate a theorem would cover."""
    lines = [f"{g.name} guarantees {_end(g)} at the end" for g in certificate.guarantees if g.applies]
    paths = [run.trajectory for run in certificate.runs if run.trajectory is not None]
    if certificate.path is not None and paths:
        promised, got = certificate.path.distance[-1], paths[0].distances[-1]
        lines.append(
            f"{certificate.path.name} guarantees distance {_number(promised)} at the end of the first run, which ended "
            f"at {_number(got)}"
        )
    lines += _measured_ends(certificate.runs, paths)
    best = certificate.admissible
    if best is None and not any(g.applies for g in certificate.guarantees):
        lines.append("no smaller rate alone would make a theorem apply")
    elif best is not None and not best.applies:
        lines.append(f"largest admissible rate: {best.advised_rate:.4g} ({best.name}); --lr theory runs with it")
    return Text("\n".join([*lines, *certificate.violations]))


def _measured_ends(runs: Sequence[MeasuredRun], paths: Sequence[Trajectory]) -> list[str]:
    ends = {
        "distance": [path.distances[-1] for path in paths],
        "objective gap": [run.gap[-1] for run in runs if len(run.gap)],
        "objective gap of the averaged model": [run.averaged_gap[-1] for run in runs if len(run.averaged_gap)],
    }
    means = {name: (sum(values) / len(values), len(values)) for name, values in ends.items() if values}
    return [
        f"measured: {name} {_number(mean)} at the end{_mean_over(count)}"
        for name, (mean, count) in means.items()
        if isfinite(mean)
    ]


def _mean_over(runs: int) -> str:
    return f", mean over {runs} runs" if runs > 1 else ""


def _end(g: Guarantee) -> str:
    parts = []
    if g.distance is not None:
        parts.append(f"distance {_number(g.distance[-1])}")
    if g.gap is not None:
        of = "" if g.averaging is None else " of the averaged model"
        parts.append(f"objective gap {_number(g.gap[-1])}{of}")
    return " and ".join(parts)


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e290 else "beyond all bounds"


def best_clock_text(clock: BestClock | None, note: str) -> Text:
    """How far the runs are from what no method can beat, and what not waiting for the slowest saves."""
    if clock is None:
        return Text(f"Best possible clock: not known, because {note}")
    best, alike = (clock.seconds(clock.target, data) for data in ("different", "same"))
    target = f"Best possible clock for objective gap {_number(clock.target)}, constants and logarithms left out"
    lines = [
        f"{target}: {_number(best)} s; were all clients' data the same: {_number(alike)} s",
        "(no method that knows fresh stochastic gradients only is faster on all problems like this one)",
    ]
    if clock.run_seconds is not None:
        factors = f"{_number(clock.run_seconds / best)} and {_number(clock.run_seconds / alike)} times as long"
        lines.append(f"measured: {_number(clock.run_seconds)} s until there, {factors}")
    if clock.speed_up is not None:
        seconds, in_rounds = map(_number, clock.speed_up)
        lines.append(
            f"As many changes as are at work at once take {seconds} s if nobody waits, {in_rounds} s in rounds that "
            f"wait for the slowest ({clock.speed_up.factor:.3g}x), were every client's time its mean"
        )
    return Text("\n".join(lines))


def advice_text(advice: Advice | None) -> Text:
    """What to change so that a theorem covers the experiment; after a certificate in which none does."""
    if advice is None:
        return Text("To be covered: nothing that was tried makes a theorem apply to this experiment.")
    return Text(f"To be covered (by {advice.theorem}), run it with: {advice.options}")


def client_influence_text(influence: ClientInfluence) -> Group:
    """How often each client is merged, predicted and counted, and how far that moves the optimum."""
    parts: list[Table | Text] = [_influence_table(influence)]
    by_cohorts = influence.prediction is not None and influence.prediction.dispatch == "cohort"
    if influence.bias is not None and influence.bias.applies and not by_cohorts:
        parts.append(
            Text(
                f"The objective that was really minimised has its optimum {_number(influence.bias.distance)} away from "
                f"the true one, where the true objective is {_number(influence.bias.gap)} too high."
            )
        )
    parts.append(Text(CHANCE if by_cohorts else influence.bias_note))
    parts.append(Text(f"Prediction: {influence.prediction_note}"))
    return Group(*parts)


def _influence_table(influence: ClientInfluence) -> Table:
    columns = {
        "predicted share": None if influence.prediction is None else influence.prediction.share,
        "predicted staleness": None if influence.prediction is None else influence.prediction.staleness,
        "share of merges": influence.shares,
        "weight": influence.bias.weight if influence.bias is not None and influence.bias.applies else None,
    }
    known = {name: values for name, values in columns.items() if values is not None}
    table = Table("client", *known, box=None, pad_edge=False)
    count = len(next(iter(known.values()))) if known else 0
    order = sorted(range(count), key=lambda client: -next(iter(known.values()))[client])
    shown = order if count <= MOST_CLIENTS else [*order[: MOST_CLIENTS // 2], *order[-MOST_CLIENTS // 2 :]]
    for client in shown:
        table.add_row(str(client), *(f"{values[client]:.3g}" for values in known.values()))
    return table
