"""The page of the arena: one HTML file with every result inside, and what filters, sorts and draws them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from asyncfed.arena.arena import BASELINE, ArenaResults
from asyncfed.arena.cells import LOCAL_STEPS, NUM_CLIENTS, TICKETS
from asyncfed.arena.entry import MULTIPLE, TUNING_SEEDS
from asyncfed.arena.measured_run import GAIN, STALLED
from asyncfed.arena.problems import PROBLEMS, SPLITS
from asyncfed.arena.ranking import nemenyi_factor
from asyncfed.arena.summary import MEASURES, MeasureSummary, Row, overall
from asyncfed.arena.tuning import FINALISTS
from asyncfed.arena.written_cells import entry_toml, split_toml
from asyncfed.report.page import html_parts as parts
from asyncfed.report.page.study_page import Texts, asset, ends, rounded, write_page
from asyncfed.strategies.algorithm import algorithm_named
from asyncfed.version import __version__


def write_arena_page(results: ArenaResults, rows: Sequence[Row], path: Path) -> Path:
    """Write the page and return its path."""
    plan = results.plan
    return write_page(
        path,
        "arena.html",
        page_data(results, rows),
        css=asset("page.css") + asset("arena.css"),
        js=asset("study.js") + asset("arena.js"),
        lead=_lead(results),
        ranking=_static_ranking(rows),
        notes=_notes(results),
        version=parts.text(__version__),
        code=parts.text(results.code[:16]),
        cite=parts.text(_citation(results)),
        command=parts.text("asyncfed arena" + (" --quick" if plan.quick else "")),
    )


def page_data(results: ArenaResults, rows: Sequence[Row]) -> dict[str, Any]:
    """What the page's script reads. Texts that many rows share are listed once, and rows point to them."""
    plan = results.plan
    cells = [cell.key for cell in plan.cells]
    texts = Texts()
    cell_tomls: dict[int, int] = {}
    listed = []
    for row in rows:
        entry, cell = row.entry, cells.index(row.entry.cell.key)
        toml = entry_toml(entry)
        strategy_text = None
        if toml is not None:
            of_cell, of_strategy = split_toml(toml)
            cell_tomls.setdefault(cell, texts.place(of_cell))
            rate, steps = f"learning_rate = {entry.rate!r}\n", f"steps = {entry.steps}\n"
            shared = of_strategy.replace(rate, "learning_rate = @RATE@\n").replace(steps, "steps = @STEPS@\n")
            strategy_text = texts.place(shared)
        listed.append(
            [
                cell,
                plan.strategies.index(entry.strategy),
                texts.place(row.verdict),
                texts.place(row.reason),
                rounded(row.left),
                entry.rate,
                entry.steps,
                strategy_text,
                [rounded(run.time) for run in entry.runs],
                *(_measure_data(row.measures[measure]) for measure in MEASURES),
            ]
        )
    limits = {row.entry.cell.key: row.entry.limit for row in rows}
    return {
        "measures": list(MEASURES),
        "baseline": BASELINE,
        "seeds": list(plan.seeds),
        "critical": nemenyi_factor(len(plan.strategies)),
        "strategies": [_strategy_data(name) for name in plan.strategies],
        "cells": [
            {
                "problem": cell.problem,
                "delays": cell.delays,
                "split": cell.split,
                "limit": rounded(limits[cell.key]),
                "toml": cell_tomls.get(number),
            }
            for number, cell in enumerate(plan.cells)
        ],
        "texts": texts.listed,
        "rows": listed,
    }


def _strategy_data(name: str) -> dict[str, Any]:
    known = algorithm_named(name)
    return {
        "name": name,
        "summary": known.summary,
        "family": known.family,
        "timing": known.timing,
        "year": known.year,
    }


def _measure_data(found: MeasureSummary) -> list[Any]:
    """reached, cost and its ends, ratio and its ends, ratio to the best, rank, group."""
    standing = found.standing
    numbers = [*ends(found.cost), *ends(found.ratio), rounded(found.to_best)]
    return [found.reached, *numbers, standing.rank, standing.group]


# ---- words -----------------------------------------------------------------------------------------------------


def _lead(results: ArenaResults) -> str:
    plan = results.plan
    problems, delays, splits = (
        len({getattr(cell, name) for cell in plan.cells}) for name in ("problem", "delays", "split")
    )
    counts = (
        f"{len(plan.strategies)} strategies in {len(plan.cells)} cells: {problems} problems by {delays} delay profiles "
        f"by {splits} ways to split the data. Each was tuned in each cell with {plan.num_trials} settings, and "
        f"measured on {len(plan.seeds)} fresh seeds."
    )
    quick = " This is the quick arena, a small share of the full one: not for conclusions." if plan.quick else ""
    return parts.text(counts + quick)


def _static_ranking(rows: Sequence[Row]) -> str:
    """The overall table by time, for browsers without scripts; the script replaces it."""
    listed = [
        {
            "strategy": one.strategy,
            "mean rank": one.mean_rank,
            "cells reached": one.cells_reached,
            "times the best, median": one.median_to_best,
        }
        for one in overall(rows)
    ]
    return parts.table(listed)


def _notes(results: ArenaResults) -> str:
    plan = results.plan
    problems = "".join(
        f"<li><b>{parts.text(problem.name)}</b>: {parts.text(problem.summary)}; target: {100 * problem.remaining:g} % "
        f"of the way left, for the worst tenth of the clients {100 * problem.worst_remaining:g} %; given up after "
        f"{problem.most_updates} merged updates.</li>"
        for problem in PROBLEMS.values()
        if any(cell.problem == problem.name for cell in plan.cells)
    )
    splits = "".join(f"<li><b>{parts.text(name)}</b>: {parts.text(words)}.</li>" for name, words in SPLITS.items())
    return Template(asset("arena_notes.html")).substitute(
        problems=problems,
        splits=splits,
        clients=NUM_CLIENTS,
        tickets=TICKETS,
        steps=LOCAL_STEPS,
        trials=plan.num_trials,
        finalists=FINALISTS,
        tuning_seeds=len(TUNING_SEEDS),
        seeds=len(plan.seeds),
        multiple=f"{MULTIPLE:g}",
        baseline=BASELINE,
        gain=f"{100 * GAIN:g}",
        stalled=STALLED,
    )


def _citation(results: ArenaResults) -> str:
    plan = results.plan
    which = "quick arena" if plan.quick else "arena"
    return (
        f"AsyncFed {__version__}, {which} of {len(plan.strategies)} strategies in {len(plan.cells)} cells, "
        f"{len(plan.seeds)} seeds, code {results.code[:16]}."
    )
