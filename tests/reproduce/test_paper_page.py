"""The summary takes its numbers from what a reproduction left behind, and `docs/paper.md` is such a summary."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import replace, to_json
from asyncfed.report.figures.figure_data import FigureData, Panel, Series, save
from asyncfed.reproduce.claims import CLAIMS
from asyncfed.reproduce.figure_spec import all_figures
from asyncfed.reproduce.paper_page import summary, summary_of

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "docs" / "paper.md").read_text()
READINGS = (ROOT / "docs" / "readings.md").read_text()


def labels(panel):
    """The labels the figure's lines have, as `figures.py` names them."""
    for arm in panel.arms:
        several = len(arm.fractions) > 1 and not panel.average
        yield from [f"{fraction:.0%}" for fraction in arm.fractions] if several else [arm.label]
        if panel.published_points:
            yield from (f"published run, {fraction:.0%}" for fraction in arm.fractions)
    if panel.mean:
        yield panel.mean


def made_up_figure(spec):
    """The figure with lines of three places that all fall from 8 to 2."""
    line = Series(label="", x=(1.0, 10.0, 100.0), y=(8.0, 4.0, 2.0))
    panels = [
        Panel(panel.title, "", "", tuple(replace(line, label=label) for label in labels(panel)))
        for panel in spec.panels
    ]
    return FigureData(spec.name, spec.title, spec.caption, tuple(panels))


@pytest.fixture
def figures():
    return [made_up_figure(spec) for spec in all_figures()]


@pytest.fixture
def findings():
    known = {"number": 0.5, "low": 0.25, "high": 0.75, "verdict": "holds"}
    return [
        {
            "id": claim.id,
            "claim": claim.claim,
            "statistic": claim.statistic,
            "unit": claim.unit,
            "reason": f"Because of {claim.id}.",
            "reading": reading,
            **known,
        }
        for claim in CLAIMS
        for reading in claim.readings
    ]


@pytest.fixture
def settings(figures):
    seeds = {figure.name: [0, 1] if int(figure.name[:2]) <= 10 else [0] for figure in figures}
    return {
        "command": "asyncfed reproduce --seeds 2",
        "versions": {"asyncfed": "9.8.7"},
        "rounds divided by": 1,
        "runs": {"one": {}, "two": {}, "three": {}},
        "figures": {name: {"seeds": used} for name, used in seeds.items()},
    }


def with_finding(findings, claim, reading, **changes):
    """The findings, with one of them changed."""
    return [f | changes if (f["id"], f["reading"]) == (claim, reading) else f for f in findings]


def with_line(figures, number, panel, label, /, **changes):
    """The figures, with one line changed."""
    figure = figures[number - 1]
    lines = [replace(s, **changes) if s.label == label else s for s in figure.panels[panel].series]
    assert lines != list(figure.panels[panel].series), f"{figure.name} has no {label}"
    panels = list(figure.panels)
    panels[panel] = replace(panels[panel], series=tuple(lines))
    return [*figures[: number - 1], replace(figure, panels=tuple(panels)), *figures[number:]]


def flat(text):
    return " ".join(text.split())


def row_of(text, beginning):
    [row] = [line for line in text.splitlines() if line.startswith(f"| {beginning}")]
    return row


# ---- numbers flow through --------------------------------------------------------------------------------------


def test_it_says_what_was_run_with_which_seeds(findings, settings, figures):
    text = flat(summary(findings, settings, figures))
    assert (
        "`asyncfed reproduce --seeds 2`: 3 runs, seeds 0, 1 for figures 1 to 10; seeds 0 for figures 11 to 16" in text
    )
    assert "asyncfed 9.8.7" in text
    assert "divided by" not in text


def test_it_says_that_it_is_shorter_than_the_paper(findings, settings, figures):
    assert "rounds divided by 10" in flat(summary(findings, settings | {"rounds divided by": 10}, figures))


def test_a_verdict_stands_in_its_claims_row_under_its_reading(findings, settings, figures):
    changed = with_finding(
        findings, "svm-afl-higher", "text", number=1.0321, low=0.93, high=2.5, verdict="undecided", unit="x"
    )
    row = row_of(summary(changed, settings, figures), "SVM: AFL ends at a higher loss.")
    assert row.split(" | ")[1:3] == ["**holds**, 0.5× (0.25 to 0.75)", "**undecided**, 1.032× (0.93 to 2.5)"]


def test_verdicts_are_counted_by_reading(findings, settings, figures):
    changed = with_finding(findings, "svm-afl-higher", "text", verdict="does not hold")
    text = flat(summary(changed, settings, figures))
    of_text = sum("text" in claim.readings for claim in CLAIMS)
    assert f"In the text reading, of {of_text}: holds {of_text - 1}, does not hold 1." in text


def test_one_seed_has_no_interval(findings, settings, figures):
    changed = with_finding(findings, "wall-clock-linear", "text", low=None, high=None, number=0.9987)
    assert "**holds**, 0.9987 R² |" in row_of(summary(changed, settings, figures), "Cumulative wall-clock")


def test_a_finding_without_a_number_says_so(findings, settings, figures):
    changed = with_finding(findings, "regression-afl-matches", "text", number=None, low=None, high=None)
    assert "**holds**, no number |" in row_of(summary(changed, settings, figures), "Regression: AFL matches")


@pytest.mark.parametrize(
    ("number", "panel", "label", "shown"),
    [
        (2, 0, "AFL", "from 8 to 0.777"),
        (2, 0, "published run, 50%", "the published run ended at 0.777"),
        (3, 1, "virtual time that passed", "0.777 s passed"),
        (4, 0, "scripts' definition: sum of longest x 45 W", "0.777 Wh as the scripts define it"),
        (5, 1, "20%", "20 % ends at 0.777"),
        (9, 0, "mean of the fractions", "the mean at 0.777"),
        (10, 1, "synchronous", "synchronous at 0.777"),
    ],
)
def test_a_figures_line_ends_where_its_row_says(findings, settings, figures, number, panel, label, shown):
    before = row_of(summary(findings, settings, figures), f"{number} |")
    changed = with_line(figures, number, panel, label, y=(8.0, 4.0, 0.7771))
    after = row_of(summary(findings, settings, changed), f"{number} |")
    assert shown in after.split(" | ")[2 + panel]
    assert shown not in before


def test_it_says_how_near_the_published_runs_are(findings, settings, figures):
    apart = with_line(figures, 5, 0, "published run, 20%", y=(8.0, 4.0, 6.0))
    known = 3 * sum(series.label.startswith("published") for series in apart[4].panels[0].series)
    text = flat(summary(findings, settings, apart))
    assert f"over {known} losses known of figure 5 by a factor of 1.00 in the median and 3.00 at most" in text


def test_it_says_which_rules_diverge_and_where_the_others_lead(findings, settings, figures):
    changed = with_line(figures, 13, 0, "sum of deltas", y=(8.0, None, None))
    text = flat(summary(findings, settings, changed))
    assert '"sum of deltas" diverges from a staleness of 10 on;' in text
    assert '"latest models" goes from 8 (staleness 1) to 2 (staleness 100);' in text


def test_reasons_are_quoted(findings, settings, figures):
    text = flat(summary(findings, settings, figures))
    for claim in ("data-non-iid", "afl-faster-heavy-delays", "svm-more-sensitive", "participation-fair"):
        assert f"Because of {claim}." in text


# ---- what is missing is asked for ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 17))
def test_every_figure_is_needed(findings, settings, figures, number):
    shown_by_it = {claim.id for claim in CLAIMS if claim.figure == number}
    others = [figure for figure in figures if not figure.name.startswith(f"{number:02}_")]
    with pytest.raises(ConfigError, match=r"covers all of it\. Run `asyncfed reproduce` without --only"):
        summary([found for found in findings if found["id"] not in shown_by_it], settings, others)


def test_a_verdict_it_quotes_is_needed(findings, settings, figures):
    fewer = [found for found in findings if found["id"] != "participation-fair"]
    with pytest.raises(ConfigError, match='no verdict on "participation-fair" in the reading text'):
        summary(fewer, settings, figures)


def test_a_line_with_another_label_is_missed(findings, settings, figures):
    changed = with_line(figures, 6, 1, "synchronous", label="FedAvg")
    with pytest.raises(ConfigError, match='no "synchronous" in panel 2 of figure 6'):
        summary(findings, settings, changed)


# ---- the command -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_prints_what_the_folder_holds(findings, settings, figures, tmp_path):
    (tmp_path / "verdicts.json").write_text(to_json(findings))
    (tmp_path / "settings.json").write_text(to_json(settings))
    for figure in figures:
        save(figure, tmp_path / "data" / f"{figure.name}.json")
    command = [sys.executable, "-m", "asyncfed.reproduce.paper_page", str(tmp_path)]
    printed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert printed == summary_of(tmp_path) == summary(findings, settings, figures)


def test_a_folder_without_a_reproduction_is_refused(tmp_path):
    with pytest.raises(JournalError, match=r"settings\.json cannot be read"):
        summary_of(tmp_path)


# ---- the page that is kept -------------------------------------------------------------------------------------


def test_the_page_says_how_it_was_made():
    text = flat(PAPER)
    command = re.search(r"The command is `(asyncfed reproduce --seeds (\d+))`: \d+ runs", text)
    assert command, "docs/paper.md does not name its command; write it with python -m asyncfed.reproduce.paper_page"
    seeds = ", ".join(map(str, range(int(command[2]))))
    assert f"seeds {seeds} for figures 1 to" in text
    assert "`python -m asyncfed.reproduce.paper_page" in text


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_page_has_a_row_for_each_claim(claim):
    _, published, text, statistic = row_of(PAPER, f"{claim.claim} |").strip("| ").split(" | ")
    assert statistic == claim.statistic
    for reading, cell in (("published", published), ("text", text)):
        assert bool(re.match(r"\*\*[a-z ]+\*\*, ", cell)) == (reading in claim.readings)


@pytest.mark.parametrize("number", range(1, 11))
def test_the_page_has_a_row_for_each_figure_of_the_paper(number):
    assert len(row_of(PAPER, f"{number} |").split(" | ")) == 4


def test_the_page_of_readings_quotes_the_page():
    section = READINGS.split("## The paper, tested")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|") and "**" in line]
    assert len(rows) >= 3
    for row in rows:
        assert row in PAPER, f"docs/readings.md quotes a row that docs/paper.md does not have: {row}"
