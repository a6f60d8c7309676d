"""The page of the robustness study: one HTML file with every result inside, and what filters and draws them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

from asyncfed.report.page import html_parts as parts
from asyncfed.report.page.study_page import Texts, asset, ends, rounded, write_page
from asyncfed.robustness.attacks import ATTACKS
from asyncfed.robustness.defences import BASES, BUFFER, DEFENCES, EXPECTED_SHARE, NUM_CLIENTS
from asyncfed.robustness.findings import findings
from asyncfed.robustness.measured_run import TAIL
from asyncfed.robustness.problems import LOCAL_STEPS, PROBLEMS, SPLITS, StudyProblem
from asyncfed.robustness.scenarios import DELAYS, HONEST, Cell, Scenario
from asyncfed.robustness.study import StudyResults
from asyncfed.robustness.summary import MOST_POINTS, MOST_RATIO, Row, break_points, costs
from asyncfed.robustness.written_cells import cell_texts
from asyncfed.version import __version__

STATIC_SHARE = 0.3
"""The share of liars that is described where there are no scripts."""


def write_robustness_page(results: StudyResults, rows: Sequence[Row], path: Path) -> Path:
    """Write the page and return its path."""
    return write_page(
        path,
        "robustness.html",
        page_data(results, rows),
        css=asset("page.css") + asset("arena.css") + asset("robustness.css"),
        js=asset("study.js") + asset("robustness.js"),
        lead=_lead(results, rows),
        findings=_static_findings(rows),
        notes=_notes(results, rows),
        version=parts.text(__version__),
        code=parts.text(results.code[:16]),
        cite=parts.text(_citation(results, rows)),
        command=parts.text("asyncfed robustness" + (" --quick" if results.plan.quick else "")),
    )


def page_data(results: StudyResults, rows: Sequence[Row]) -> dict[str, Any]:
    """What the page's script reads. Texts that many rows share are listed once, and rows point to them."""
    seed = results.plan.seeds[0]
    scenarios, defences, attacks = _parts(rows)
    texts = _Places(scenarios, defences, attacks)
    data = {
        "seeds": list(results.plan.seeds),
        "honest": HONEST,
        "most_ratio": MOST_RATIO,
        "most_points": MOST_POINTS,
        "scenarios": [_scenario_data(scenario, defences, seed, texts.all) for scenario in scenarios],
        "defences": [_defence_data(name) for name in defences],
        "attacks": [_attack_data(name, scenarios[0], defences[0], seed) for name in attacks],
        "rows": [_row_data(row, texts) for row in rows],
        "breaks": [
            [*texts.of(point.scenario, point.defence, point.attack), point.share, point.most]
            for point in break_points(rows)
        ],
        "costs": [
            [
                *texts.of(cost.scenario, cost.defence),
                ends(cost.time),
                ends(cost.level),
                ends(cost.points),
                cost.filtered,
            ]
            for cost in costs(rows)
        ],
        "findings": [
            [scenarios.index(found.scenario), attacks.index(found.attack), found.share, texts.all.place(found.sentence)]
            for found in findings(rows)
        ],
    }
    return {**data, "texts": texts.all.listed}


class _Places:
    """Where scenarios, defences and attacks are in the lists of the page."""

    def __init__(self, scenarios: list[Scenario], defences: list[str], attacks: list[str]) -> None:
        self.all = Texts()
        self._scenarios = {scenario: place for place, scenario in enumerate(scenarios)}
        self._defences = {name: place for place, name in enumerate(defences)}
        self._attacks = {name: place for place, name in enumerate(attacks)}

    def of(self, scenario: Scenario, defence: str, attack: str | None = None) -> list[int]:
        """The place of each; of no attack, -1."""
        own = [self._scenarios[scenario], self._defences[defence]]
        return own if attack is None else [*own, self._attacks.get(attack, -1)]


def _parts(rows: Sequence[Row]) -> tuple[list[Scenario], list[str], list[str]]:
    """The scenarios, defences and attacks of the rows, in the order in which they are listed."""
    scenarios = list(dict.fromkeys(row.cell.scenario for row in rows))
    defences = {row.cell.defence for row in rows}
    attacks = {row.cell.attack for row in rows}
    return scenarios, [name for name in DEFENCES if name in defences], [name for name in ATTACKS if name in attacks]


def _scenario_data(scenario: Scenario, defences: Sequence[str], seed: int, texts: Texts) -> dict[str, Any]:
    of_cells = [cell_texts(Cell(scenario, name, HONEST, 0.0), seed) for name in defences]
    return {
        "problem": scenario.problem,
        "split": scenario.split,
        "delays": scenario.delays,
        "judged": PROBLEMS[scenario.problem].judged_by,
        "toml": texts.place(of_cells[0][0]),
        "strategies": [texts.place(of_defence) for _, of_defence, _ in of_cells],
    }


def _defence_data(name: str) -> dict[str, Any]:
    known = DEFENCES[name]
    return {"name": name, "summary": known.summary, "base": known.base, "group": known.group}


def _attack_data(name: str, scenario: Scenario, defence: str, seed: int) -> dict[str, Any]:
    toml = cell_texts(Cell(scenario, defence, name, 0.25), seed)[2]
    return {"name": name, "summary": ATTACKS[name].summary, "toml": toml.replace("share = 0.25", "share = @SHARE@")}


def _row_data(row: Row, texts: _Places) -> list[Any]:
    cell, runs = row.cell, row.result.runs
    return [
        *texts.of(cell.scenario, cell.defence, cell.attack),
        cell.share,
        texts.all.place(row.verdict),
        texts.all.place(row.reason),
        ends(row.ratio),
        ends(row.points),
        *(rounded(v) for v in (row.lying_arrived, row.lying_merged, row.precision, row.recall, row.filtered_honest)),
        [rounded(run.accuracy if run.accuracy is not None else run.excess) for run in runs],
    ]


# ---- words -----------------------------------------------------------------------------------------------------


def _lead(results: StudyResults, rows: Sequence[Row]) -> str:
    scenarios, defences, attacks = _parts(rows)
    shares = sorted({row.cell.share for row in rows if row.cell.share > 0})
    defended = len([name for name in defences if name not in BASES])
    words = (
        f"{len(attacks)} attacks against {defended} defences, with {_percent(shares)} of {NUM_CLIENTS} clients lying, "
        f"in {len(scenarios)} scenarios; every run asynchronous, each on {len(results.plan.seeds)} seeds. A defence "
        f"holds if it ends within {MOST_RATIO:g} times the honest run's excess loss; of the network, if its accuracy "
        f"is at most {MOST_POINTS:g} points lower."
    )
    quick = (
        " This is the quick study, a small share of the full one: not for conclusions." if results.plan.quick else ""
    )
    return parts.text(words + quick)


def _percent(shares: Sequence[float]) -> str:
    texts = [f"{100 * share:g} %" for share in shares]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _static_findings(rows: Sequence[Row]) -> str:
    """What was found, for browsers without scripts; the script shows those of the chosen scenario instead."""
    every = findings(rows)
    shares = sorted({found.share for found in every})
    share = min(shares, key=lambda value: abs(value - STATIC_SHARE), default=STATIC_SHARE)
    listed = [found for found in every if found.share == share]
    groups = dict.fromkeys(found.scenario for found in listed)
    return "".join(
        f"<h3>{parts.text(', '.join((scenario.problem, scenario.split, scenario.delays)))}</h3><ul>"
        + "".join(f"<li>{parts.text(one.sentence)}</li>" for one in listed if one.scenario == scenario)
        + "</ul>"
        for scenario in groups
    )


def _notes(results: StudyResults, rows: Sequence[Row]) -> str:
    scenarios, defences, attacks = _parts(rows)
    problems = {scenario.problem for scenario in scenarios}
    return Template(asset("robustness_notes.html")).substitute(
        problems=_list(
            (
                problem.name,
                _problem_words(problem),
            )
            for problem in PROBLEMS.values()
            if problem.name in problems
        ),
        splits=_list(SPLITS.items()),
        delays=_list((name, words) for name, (words, _) in DELAYS.items()),
        attacks=_list((name, ATTACKS[name].summary) for name in attacks),
        defences=_list((name, DEFENCES[name].summary) for name in defences),
        clients=NUM_CLIENTS,
        buffer=BUFFER,
        steps=LOCAL_STEPS,
        expected=f"{100 * EXPECTED_SHARE:g}",
        tail=f"{100 * TAIL:g}",
        seeds=len(results.plan.seeds),
        ratio=f"{MOST_RATIO:g}",
        points=f"{MOST_POINTS:g}",
    )


def _problem_words(problem: StudyProblem) -> str:
    target = f"target of the cost table: {100 * problem.remaining:g} % of the way left"
    return f"{problem.summary}; rate {problem.rate:g}, {problem.seconds:g} virtual seconds; {target}"


def _list(items: Any) -> str:
    listed = (f"<li><b>{parts.text(name.replace('_', ' '))}</b>: {parts.text(words)}.</li>" for name, words in items)
    return f"<ul>{''.join(listed)}</ul>"


def _citation(results: StudyResults, rows: Sequence[Row]) -> str:
    scenarios, defences, attacks = _parts(rows)
    which = "quick robustness study" if results.plan.quick else "robustness study"
    return (
        f"AsyncFed {__version__}, {which} of {len(attacks)} attacks and {len(defences)} strategies in {len(scenarios)} "
        f"scenarios, {len(results.plan.seeds)} seeds, code {results.code[:16]}."
    )
