"""A reproduction told in two pages of Markdown, `docs/paper.md`; every number is taken from what the run left behind.

python -m asyncfed.reproduce.summary runs/reproduce > docs/paper.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from textwrap import fill
from typing import Any

from asyncfed.core.errors import AsyncFedError, ConfigError
from asyncfed.data import PaperRegression
from asyncfed.presets import Reading, preset
from asyncfed.report.figure_data import FigureData, Series, load
from asyncfed.report.units import short
from asyncfed.store.text import read_json

WIDTH = 120
READINGS: tuple[Reading, ...] = ("published", "text")
PANEL_OF: dict[Reading, int] = {"published": 0, "text": 1}
PAPER_FIGURES = range(1, 11)
SETTLED = 1.1

SPREAD = "delay spread: longest minus shortest"
BY_TEXT, BY_SCRIPTS = "text's definition: ", "scripts' definition: "


def summary(findings: list[dict[str, Any]], settings: dict[str, Any], figures: list[FigureData]) -> str:
    """The text of `docs/paper.md`, of a whole reproduction: what `verdicts.json`, `settings.json` and `data/` hold."""
    told = Told(findings, settings, figures)
    parts = [
        "# The paper, reproduced and judged",
        *_what_was_reproduced(told),
        "## The ten figures",
        *_ten_figures(told),
        "## The verdicts",
        *_verdicts(told),
        "## What differs from the paper, and why",
        _bullets(_differences(told)),
        "## What the paper does not show",
        _bullets(_not_shown(told)),
    ]
    return "\n\n".join(parts) + "\n"


class Told:
    """The findings and figures of a reproduction, looked up by name; what is missing is asked for."""

    def __init__(
        self, findings: Sequence[Mapping[str, Any]], settings: Mapping[str, Any], figures: Sequence[FigureData]
    ) -> None:
        self.findings = findings
        self.settings = settings
        self.figures = {int(figure.name.split("_")[0]): figure for figure in figures}

    def finding(self, claim: str, reading: Reading) -> Mapping[str, Any]:
        for found in self.findings:
            if (found["id"], found["reading"]) == (claim, reading):
                return found
        raise _incomplete(f'no verdict on "{claim}" in the reading {reading}')

    def number(self, claim: str, reading: Reading) -> str:
        return _number(self.finding(claim, reading))

    def figure(self, number: int) -> FigureData:
        if number not in self.figures:
            raise _incomplete(f"no figure {number}")
        return self.figures[number]

    def series(self, figure: int, panel: int, label: str) -> Series:
        """The series whose label begins so."""
        panels = self.figure(figure).panels
        for series in panels[panel].series if panel < len(panels) else ():
            if series.label.startswith(label):
                return series
        raise _incomplete(f'no "{label}" in panel {panel + 1} of figure {figure}')

    def last(self, figure: int, panel: int, label: str) -> str:
        return _last(self.series(figure, panel, label))


def _incomplete(what: str) -> ConfigError:
    return ConfigError(
        f"The reproduction has {what}, and the summary tells of all of it. Run `asyncfed reproduce` without --only, "
        "with this version of AsyncFed."
    )


def _number(found: Mapping[str, Any]) -> str:
    if found["number"] is None:
        return "no number"
    unit = "×" if found["unit"] == "x" else f" {found['unit']}" if found["unit"] else ""
    return f"{short(found['number'])}{unit}"


def _last(series: Series) -> str:
    return "diverged" if series.y[-1] is None else short(series.y[-1])


def _mean(series: Series) -> str:
    return short(fmean(y for y in series.y if y is not None))


# ---- what was run ----------------------------------------------------------------------------------------------


def _what_was_reproduced(told: Told) -> list[str]:
    settings = told.settings
    shorter = settings["rounds divided by"]
    versions = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    return [
        _wrapped(
            "Forootani & Iervolino's simulations, run again and measured. The command is "
            f"`{settings['command']}`: {len(settings['runs'])} runs, {_seeds(told)}; {versions}. This page is written "
            "from their results by `python -m asyncfed.reproduce.summary`; the interactive one is "
            "`runs/reproduce/report.html`. How to make one figure, and what else is written, is in the "
            "[guide](guide.md#the-paper-again)."
        ),
        _wrapped(
            f"{_task(told, 'regression', 2)} {_task(told, 'svm', 8)} Both have {preset('svm')().num_clients} clients, "
            "AFL and its synchronous rival, and 20 to 90 % of the clients at work."
            + (f" This run had the paper's rounds divided by {shorter}." if shorter > 1 else "")
        ),
        _wrapped(
            "Everything is run in two readings. **Published** is what the published scripts do: rounds wait for their "
            "slowest client, clients never download, and the loss is that on client 0. **Text** is Algorithm 1 as "
            "written: clients download, the server merges on arrival in virtual time and averages every client's "
            "latest model, and the loss is the objective over all clients."
        ),
    ]


def _seeds(told: Told) -> str:
    """Which seeds, and which figures have them."""
    figures_of: dict[tuple[int, ...], list[int]] = {}
    for name, figure in told.settings["figures"].items():
        figures_of.setdefault(tuple(figure["seeds"]), []).append(int(name.split("_")[0]))
    return "; ".join(
        f"seeds {', '.join(map(str, seeds))} for figures {numbers[0]} to {numbers[-1]}"
        for seeds, numbers in figures_of.items()
    )


def _task(told: Told, name: str, figure: int) -> str:
    experiment = preset(name)()
    work, rounds = experiment.strategy.work, told.series(figure, PANEL_OF["text"], "AFL").x[-1]
    samples = f"{experiment.data.num_samples:,} samples of {experiment.data.num_features} features"
    return (
        f"The {'SVM' if name == 'svm' else name} has {samples} and {rounds:,.0f} rounds of {work.epochs} local epochs "
        f"(batches of {work.batch_size}, base rate {work.learning_rate:g})."
    )


# ---- the ten figures -------------------------------------------------------------------------------------------


def _ten_figures(told: Told) -> list[str]:
    rows = [
        (str(number), told.figure(number).title, *(_FIGURES[number](told, number, reading) for reading in READINGS))
        for number in PAPER_FIGURES
    ]
    agreement = " ".join(_agreement(told, figure) for figure in (5, 9))
    return [
        _table(("", "figure", "published reading", "text's reading"), rows),
        _wrapped(
            "Losses are geometric means over seeds; regression's are mean squared errors in the published reading and "
            f"half of that in the text's. {agreement}"
        ),
    ]


def _delays(told: Told, figure: int, reading: Reading) -> str:
    words = f"durations of a round {_mean(told.series(figure, PANEL_OF[reading], SPREAD))} s apart on average"
    if figure == 1:
        words += f", at most {told.number('regression-delay-acceptable', reading)} in a run"
    if reading == "text":
        words += f"; updates {_mean(told.series(figure, 2, 'mean of the round'))} versions stale"
    return words


def _loss(told: Told, figure: int, reading: Reading) -> str:
    series = told.series(figure, PANEL_OF[reading], "AFL")
    words = f"from {short(series.y[0] or 0.0)} to {_last(series)} in {series.x[-1]:,.0f} rounds"
    return words if reading == "text" else f"{words}; the published run ended at {told.last(figure, 0, 'published')}"


def _two_definitions(unit: str) -> Callable[[Told, int, Reading], str]:
    def words(told: Told, figure: int, reading: Reading) -> str:
        panel = PANEL_OF[reading]
        return (
            f"{told.last(figure, panel, BY_SCRIPTS)} {unit} as the scripts define it, "
            f"{told.last(figure, panel, BY_TEXT)} {unit} as the text does"
        )

    return words


def _wall_clock(told: Told, figure: int, reading: Reading) -> str:
    passed = told.last(figure, PANEL_OF[reading], "virtual time that passed")
    return f"{_two_definitions('s')(told, figure, reading)}; {passed} s passed"


def _fractions(told: Told, figure: int, reading: Reading) -> str:
    task, panel = "svm" if figure == 9 else "regression", PANEL_OF[reading]
    return (
        f"20 % ends at {told.last(figure, panel, '20%')}, 90 % at {told.last(figure, panel, '90%')}, the mean at "
        f"{told.last(figure, panel, 'mean')}; 90 % needs {told.number(f'{task}-more-clients-faster', reading)} the "
        "rounds of 20 %"
    )


def _comparison(told: Told, figure: int, reading: Reading) -> str:
    claim, panel = "svm-sync-faster" if figure == 10 else "regression-sync-faster-early", PANEL_OF[reading]
    return (
        f"AFL ends at {told.last(figure, panel, 'AFL')}, synchronous at {told.last(figure, panel, 'synchronous')}; "
        f"synchronous needs {told.number(claim, reading)} the rounds of AFL"
    )


_FIGURES: dict[int, Callable[[Told, int, Reading], str]] = {
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


def _agreement(told: Told, figure: int) -> str:
    """How near the published runs come to ours, over all fractions and rounds for which their losses are known."""
    apart = []
    for points in told.figure(figure).panels[0].series:
        if points.label.startswith("published run, "):
            ours = told.series(figure, 0, points.label.removeprefix("published run, "))
            known = dict(zip(ours.x, ours.y, strict=True))
            apart += [
                abs(log(y / (known[x] or y))) for x, y in zip(points.x, points.y, strict=True) if y and x in known
            ]
    if not apart:
        raise _incomplete(f"no losses of the published runs in figure {figure}")
    return (
        f"In figure {figure} the {len(apart)} known losses of the published runs, one unseeded run each, differ from "
        f"ours by a factor of {exp(median(apart)):.2f} (median; at most {exp(max(apart)):.2f})."
    )


# ---- the verdicts ----------------------------------------------------------------------------------------------


def _verdicts(told: Told) -> list[str]:
    of_claims: dict[str, dict[str, Mapping[str, Any]]] = {}
    for found in told.findings:
        of_claims.setdefault(found["id"], {})[found["reading"]] = found
    rows = []
    for judged in of_claims.values():
        either = next(iter(judged.values()))
        cells = [_judged(judged[reading]) if reading in judged else "" for reading in READINGS]
        rows.append((either["claim"], *cells, either["statistic"]))
    return [
        _wrapped(
            "A claim holds, or does not, if the 95 % interval over seeds (in brackets) lies wholly on one side of the "
            "limit; otherwise it cannot be told. × is a ratio. An empty cell: the claim is about the other reading. "
            + " ".join(_count(told, reading) for reading in READINGS)
        ),
        _table(("claim", "published reading", "text's reading", "the number"), rows),
    ]


def _judged(found: Mapping[str, Any]) -> str:
    interval = "" if found["low"] is None else f" ({short(found['low'])} to {short(found['high'])})"
    return f"**{found['verdict']}**, {_number(found)}{interval}"


def _count(told: Told, reading: Reading) -> str:
    counts = Counter(found["verdict"] for found in told.findings if found["reading"] == reading)
    listed = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
    return f"In the {reading} reading, of {counts.total()}: {listed}."


# ---- what differs ----------------------------------------------------------------------------------------------


def _differences(told: Told) -> list[str]:
    number, last = told.number, told.last
    noise = PaperRegression().noise
    return [
        "**The published scripts never download.** Each client trains its own model on for ever and the server only "
        "mixes them. A round waits for all its clients, so nothing is stale and no time is saved: "
        f"{last(3, 0, 'virtual time')} s for the regression of figure 3, against {last(3, 1, 'virtual time')} s when "
        "the server merges on arrival.",
        f"**The published split is IID.** {told.finding('data-non-iid', 'published')['reason']} Fluctuations in the "
        "published figures have other causes; with a split that is non-IID the text's SVM changes by "
        f"{number('svm-fluctuates', 'text')}, the scripts' by {number('svm-fluctuates', 'published')}.",
        f'**No loss can settle "around 10⁻²".** The noise has standard deviation {noise:g}, so the least mean squared '
        f"error is about {noise**2:.2g}: synchronous learning ends at {number('regression-sync-hundredth', 'published')} "
        f"(published) and {number('regression-sync-hundredth', 'text')} (text).",
        "**The squared loss.** The text's has a ½, PyTorch's has none: the scripts' losses are twice the text's "
        f"({last(2, 0, 'AFL')} and {last(2, 1, 'AFL')} at the end of figure 2), and so are their steps.",
        "**Two rates are compared, not two algorithms.** AFL's rate falls with the square root of the local epoch, its "
        f"rival's is constant. Averaged over the epochs, AFL's is {_mean_rate('regression')} of it (SVM: "
        f"{_mean_rate('svm')}); in the published reading synchronous learning needs "
        f"{number('regression-sync-faster-early', 'published')} its rounds (SVM: "
        f"{number('svm-sync-faster', 'published')}). Figure 11 gives all the same rate.",
        "**Wall-clock time** is Σ (longest − shortest) in the text and Σ longest in the scripts: "
        f"{last(3, 0, BY_TEXT)} s and {last(3, 0, BY_SCRIPTS)} s for the same runs. Neither is the time that passes "
        "when nobody waits.",
        "**Energy** is the power of every client times its duration in the text, and one device's power times the "
        f"wall-clock time in the scripts: {last(4, 0, BY_TEXT)} Wh and {last(4, 0, BY_SCRIPTS)} Wh for the same runs.",
        "**Seconds** are drawn from delays that imitate the authors' laptop (log-normal). They are virtual: they say "
        "how long clients would take, not how long this machine took.",
    ]


def _mean_rate(name: str) -> str:
    epochs = preset(name)().strategy.work.epochs
    return short(fmean((epoch + 1) ** -0.5 for epoch in range(epochs)))


# ---- what is not shown -----------------------------------------------------------------------------------------


def _not_shown(told: Told) -> list[str]:
    last = told.last
    reason = {found["id"]: found["reason"] for found in told.findings if found["reading"] == "text"}
    missing = {"afl-faster-light-delays", "afl-faster-heavy-delays", "svm-more-sensitive", "participation-fair"} - {
        *reason
    }
    if missing:
        raise _incomplete(f"no verdict on {', '.join(sorted(missing))} in the reading text")
    rules = [("latest models", "AFL, latest"), ("mixing by one half", "AFL, mixing"), ("synchronous", "synchronous")]
    return [
        f"**Time** (figure 11). Light delays: {reason['afl-faster-light-delays']} Heavy-tailed ones: "
        f"{reason['afl-faster-heavy-delays']}",
        "**Bytes and energy** (figure 12). After the same bytes, "
        f"{told.series(12, 0, 'synchronous').x[-1] / 1000:.0f} kB, the regression's objective is "
        + ", ".join(f"{last(12, 0, label)} ({name})" for name, label in rules)
        + "; the SVM's "
        + ", ".join(last(12, 2, label) for _, label in rules)
        + ".",
        f"**Aggregate under staleness** (figure 13). {_under_staleness(told)}",
        "**Splits** (figure 14). Rounds until AFL's objective stays within 10 % of its end: "
        f"{_settling(told.figure(14))}.",
        f"**Sensitivity** (figure 15). {reason['svm-more-sensitive']} With a fifth of the clients "
        f"{short(told.series(15, 2, 'SVM').x[-1])} times slower the regression's objective grows to "
        f"{last(15, 2, 'regression')} times, the SVM's to {last(15, 2, 'SVM')} times what it is with none slow.",
        f"**Participation** (figure 16). {reason['participation-fair']} At the largest spread of speeds AFL's model "
        f"ends {last(16, 2, 'AFL, latest')} from the optimum that weighs all clients equally, the synchronous one "
        f"{last(16, 2, 'synchronous')}.",
    ]


def _under_staleness(told: Told) -> str:
    """Which rules diverge at the paper's rate, from which staleness on, and where the others end."""
    diverged, stayed = [], []
    for series in told.figure(13).panels[0].series:
        lost = [x for x, y in zip(series.x, series.y, strict=True) if y is None]
        if lost:
            diverged.append(f"{series.label} diverges from a staleness of {min(lost):g} versions on")
        else:
            stayed.append(f"{series.label} ends at {_last(series)}")
    farthest = max(series.x[-1] for series in told.figure(13).panels[0].series)
    first = f"At the paper's rate {'; '.join(diverged)}." if diverged else "At the paper's rate no rule diverges."
    return f"{first} At a staleness of {farthest:g}, {', '.join(stayed)}." if stayed else first


def _settling(figure: FigureData) -> str:
    return "; ".join(
        f"{panel.title}: " + ", ".join(f"{_settled_at(series):.0f} ({series.label})" for series in panel.series)
        for panel in figure.panels
    )


def _settled_at(series: Series) -> float:
    """The round after the last one above 1.1 times the end.

    >>> _settled_at(Series(label="", x=(1.0, 2.0, 3.0, 4.0), y=(9.0, 1.0, 1.2, 1.0)))
    4.0
    """
    end = series.y[-1] or 0.0
    apart = [place for place, y in enumerate(series.y) if y is None or y > SETTLED * end]
    return series.x[min(apart[-1] + 1, len(series.x) - 1)] if apart else series.x[0]


# ---- Markdown --------------------------------------------------------------------------------------------------


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(
        fill(f"- {item}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for item in items
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown.

    >>> print(_table(("claim", "number"), [("a | b", "1")]))
    | claim | number |
    |---|---|
    | a \\| b | 1 |
    """
    lines = [head, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    written = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([written[0], "|" + "---|" * len(head), *written[1:]])


# ---- the command -----------------------------------------------------------------------------------------------


def summary_of(folder: Path) -> str:
    """The summary of what `asyncfed reproduce --out folder` wrote."""
    settings = read_json(folder / "settings.json")
    figures = [load(folder / "data" / f"{name}.json") for name in settings["figures"]]
    return summary(read_json(folder / "verdicts.json"), settings, figures)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python -m asyncfed.reproduce.summary FOLDER, the --out of `asyncfed reproduce`")
    try:
        print(summary_of(Path(sys.argv[1])), end="")
    except AsyncFedError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
