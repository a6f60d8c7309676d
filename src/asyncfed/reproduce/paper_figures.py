"""How the paper's ten figures came out, a line each, in both readings."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from statistics import fmean, median

from asyncfed.analysis.plain_text import format_number
from asyncfed.presets import Reading
from asyncfed.report.figures.figure_data import Series
from asyncfed.reproduce.findings import BY_SCRIPTS, BY_TEXT, READINGS, Findings, incomplete, value_words
from asyncfed.reproduce.markdown import table, wrapped

PANEL_OF: dict[Reading, int] = {"published": 0, "text": 1}
SPREAD = "delay spread: longest minus shortest"


def ten_figures(findings: Findings) -> list[str]:
    """A table of the figures, and how near the published runs lie."""
    rows = [
        (
            str(number),
            findings.figure(number).title,
            *(_FIGURES[number](findings, number, reading) for reading in READINGS),
        )
        for number in _FIGURES
    ]
    agreement = "; ".join(_agreement(findings, figure) for figure in (5, 9))
    return [
        table(("", "figure", "published reading", "text's reading"), rows),
        wrapped(
            "Losses are geometric means over seeds; regression's are mean squared errors in the published reading and "
            "half of that in the text's. The published runs, one without a seed for each fraction, differ from ours "
            f"{agreement}."
        ),
    ]


def _mean(series: Series) -> str:
    return format_number(fmean(y for y in series.y if y is not None))


def _delays(findings: Findings, figure: int, reading: Reading) -> str:
    words = f"durations of a round {_mean(findings.series(figure, PANEL_OF[reading], SPREAD))} s apart on average"
    if figure == 1:
        words += f", {findings.number('regression-delay-acceptable', reading)} in a run's widest"
    if reading == "text":
        words += f"; updates {_mean(findings.series(figure, 2, 'mean of the round'))} versions stale"
    return words


def _loss(findings: Findings, figure: int, reading: Reading) -> str:
    series = findings.series(figure, PANEL_OF[reading], "AFL")
    words = f"from {value_words(series.y[0])} to {value_words(series.y[-1])} in {series.x[-1]:,.0f} rounds"
    return (
        words if reading == "text" else f"{words}; the published run ended at {findings.last(figure, 0, 'published')}"
    )


def _two_definitions(unit: str) -> Callable[[Findings, int, Reading], str]:
    def words(findings: Findings, figure: int, reading: Reading) -> str:
        panel = PANEL_OF[reading]
        return (
            f"{findings.last(figure, panel, BY_SCRIPTS)} {unit} as the scripts define it, "
            f"{findings.last(figure, panel, BY_TEXT)} {unit} as the text does"
        )

    return words


def _wall_clock(findings: Findings, figure: int, reading: Reading) -> str:
    passed = findings.last(figure, PANEL_OF[reading], "virtual time that passed")
    return f"{_two_definitions('s')(findings, figure, reading)}; {passed} s passed"


def _fractions(findings: Findings, figure: int, reading: Reading) -> str:
    task, panel = "svm" if figure == 9 else "regression", PANEL_OF[reading]
    return (
        f"20 % ends at {findings.last(figure, panel, '20%')}, 90 % at {findings.last(figure, panel, '90%')}, the mean "
        f"at {findings.last(figure, panel, 'mean')}; 90 % needs "
        f"{findings.number(f'{task}-more-clients-faster', reading)} the rounds of 20 %"
    )


def _comparison(findings: Findings, figure: int, reading: Reading) -> str:
    claim, panel = "svm-sync-faster" if figure == 10 else "regression-sync-faster-early", PANEL_OF[reading]
    return (
        f"AFL ends at {findings.last(figure, panel, 'AFL')}, synchronous at "
        f"{findings.last(figure, panel, 'synchronous')}; "
        f"synchronous needs {findings.number(claim, reading)} the rounds of AFL"
    )


_FIGURES: dict[int, Callable[[Findings, int, Reading], str]] = {
    1: _delays,
    2: _loss,
    3: _wall_clock,
    4: _two_definitions("Wh"),
    5: _fractions,
    6: _comparison,
    7: _delays,
    8: _loss,
    9: _fractions,
    10: _comparison,
}


def _agreement(findings: Findings, figure: int) -> str:
    """How near the published runs come to ours, over all fractions and rounds for which their losses are known."""
    apart = []
    for points in findings.figure(figure).panels[0].series:
        if points.label.startswith("published run, "):
            ours = findings.series(figure, 0, points.label.removeprefix("published run, "))
            known = {x: y for x, y in zip(ours.x, ours.y, strict=True) if y}
            pairs = [(y, known[x]) for x, y in zip(points.x, points.y, strict=True) if y and x in known]
            apart += [abs(log(theirs / ours)) for theirs, ours in pairs]
    if not apart:
        raise incomplete(f"no losses of the published runs in figure {figure}")
    return (
        f"over {len(apart)} losses known of figure {figure} by a factor of {exp(median(apart)):.2f} in the median and "
        f"{exp(max(apart)):.2f} at most"
    )
