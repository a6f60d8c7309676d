"""The page of the communication study: claims, ratios of every codec and strategy, figures, and how it was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asyncfed.analysis.plain_text import format_number
from asyncfed.analysis.statistics import Interval
from asyncfed.communication.cells import DOWN_PER_UP, LINKS, cell_toml
from asyncfed.communication.claims import judge
from asyncfed.communication.codecs import CODECS
from asyncfed.communication.entry import TUNING_SEED
from asyncfed.communication.problems import LOCAL_STEPS, PROBLEMS
from asyncfed.communication.strategies import AT_WORK, NUM_CLIENTS, STRATEGIES
from asyncfed.communication.study import StudyResults
from asyncfed.communication.summary import MEASURES, Measure, Row
from asyncfed.report.figures.figure_data import FigureData
from asyncfed.report.page.html_page import write_page
from asyncfed.version import __version__


def write_communication_page(
    results: StudyResults, rows: Sequence[Row], figures: Sequence[FigureData], folder: Path
) -> Path:
    """Write communication.html into a folder and return its path.

    Args:
        results: what was computed.
        rows: their summary.
        figures: those of `study_figures`.
        folder: where; PNG files of the figures that are there are shown in print.
    """
    quick = ": the quick one, a small share of it" if results.plan.quick else ""
    images = {figure.name: path.read_bytes() for figure in figures if (path := folder / f"{figure.name}.png").is_file()}
    return write_page(
        folder / "communication.html",
        f"Communication study{quick}",
        _verdicts(rows, figures),
        figures,
        _settings(results, rows),
        tables=ratio_tables(rows),
        images=images,
    )


def ratio_tables(rows: Sequence[Row]) -> dict[str, list[dict[str, Any]]]:
    """A table for each problem, link and measure: codecs by strategies, with the ratio to sending everything."""
    tables = {}
    measures: tuple[Measure, ...] = ("bytes_up", "bytes", "uploads", "seconds")
    for problem in dict.fromkeys(row.cell.problem for row in rows):
        own = [row for row in rows if row.cell.problem == problem]
        links = list(dict.fromkeys(row.cell.link for row in own))
        for measure in measures:
            for link in links if measure == "seconds" else links[:1]:
                shown = [row for row in own if row.cell.link == link]
                on = f" on {LINKS[link][0]}" if measure == "seconds" else ""
                title = f"{problem}: times fewer {MEASURES[measure][0]} to the target than sending everything{on}"
                tables[title] = _ratio_table(shown, measure)
    return tables


def _ratio_table(rows: Sequence[Row], measure: Measure) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        line = found.setdefault(row.cell.codec, {"codec": row.cell.codec.replace("_", " ")})
        ratio = row.savings[measure].ratio
        line[row.cell.strategy] = _missed(row) if ratio is None else _words(ratio)
    return list(found.values())


def _missed(row: Row) -> str:
    """How a cell ended that has no ratio, and how far it came."""
    some = f" ({row.reached} of {len(row.runs)})" if row.reached else ""
    left = f", {100 * row.least_left.mean:.2g} % left" if row.verdict in ("never", "partly reached") else ""
    return f"{row.verdict}{some}{left}"


def _words(interval: Interval) -> str:
    mean, low, high = (format_number(value) for value in (interval.mean, interval.low, interval.high))
    return f"{mean} ({low} to {high})" if interval.n > 1 else mean


def _verdicts(rows: Sequence[Row], figures: Sequence[FigureData]) -> list[Mapping[str, Any]]:
    names = {figure.name for figure in figures}
    verdicts: list[Mapping[str, Any]] = []
    for claim in judge(rows):
        place = f"{claim.problem}_{'links' if claim.id.endswith('time') else 'costs'}"
        measured = claim.interval
        ends = {} if measured is None else {"number": measured.mean}
        if measured is not None and measured.n > 1:
            ends |= {"low": measured.low, "high": measured.high}
        verdicts.append(
            {
                "id": claim.id,
                "claim": f"{claim.problem}: {claim.words}",
                "statistic": claim.statistic,
                **ends,
                "verdict": claim.verdict,
                "reason": claim.reason,
                "figure": place if place in names else None,
            }
        )
    return verdicts


def _settings(results: StudyResults, rows: Sequence[Row]) -> dict[str, Any]:
    shown = {name: {getattr(row.cell, name) for row in rows} for name in ("problem", "link", "strategy", "codec")}
    first = rows[0]
    return {
        "How it was done": {
            "clients": f"{NUM_CLIENTS}, of which {AT_WORK} are at work; targets are skewed between them",
            "local work": f"{LOCAL_STEPS} mini-batch steps a ticket",
            "learning rate": "tuned for every strategy and codec alike: every rate of the problem is tried on a seed "
            f"of its own ({TUNING_SEED}), and the one with the fewest bytes up to the target is measured",
            "target": "a share of the way from the first model's loss to the least: see the problems",
            "links": f"downloads are {DOWN_PER_UP:g} times as fast as uploads",
            "intervals": "95 %, Student's t on logarithms over seeds; ratios are paired by seed",
        },
        "Problems": [_problem(name) for name in PROBLEMS if name in shown["problem"]],
        "Codecs": [{"codec": n, "what is sent": c.summary} for n, c in CODECS.items() if n in shown["codec"]],
        "Strategies": [{"strategy": n, "what": s.summary} for n, s in STRATEGIES.items() if n in shown["strategy"]],
        "Links": [{"link": name, "what": words} for name, (words, _) in LINKS.items() if name in shown["link"]],
        "Learning rates": [
            {"problem": e.request.problem, "strategy": e.request.strategy, "codec": e.request.codec, "rate": e.rate}
            for e in results.entries
        ],
        "One run as TOML, for `asyncfed run`": cell_toml(first.cell, first.rate, results.plan.requests[0].seeds[0]),
        "Version": {"asyncfed": __version__, "code": results.code[:16]},
    }


def _problem(name: str) -> dict[str, Any]:
    problem = PROBLEMS[name]
    return {
        "problem": name,
        "what": problem.summary,
        "target": f"{100 * problem.remaining:g} % left",
        "given up after": f"{problem.most_updates} merged updates",
        "rates tried": ", ".join(f"{rate:g}" for rate in problem.rates),
    }
