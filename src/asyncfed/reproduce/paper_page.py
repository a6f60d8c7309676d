"""A reproduction summarised in two pages of Markdown, `docs/paper.md`; every number is taken from the run's results.

It is written by `python -m asyncfed.reproduce.paper_page runs/reproduce > docs/paper.md`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from asyncfed.analysis.plain_text import format_number
from asyncfed.core.errors import AsyncFedError
from asyncfed.core.record import to_plain
from asyncfed.data import PaperRegression
from asyncfed.presets import Reading, preset
from asyncfed.report.figures.figure_data import FigureData, Series, load
from asyncfed.reproduce.findings import (
    BY_SCRIPTS,
    BY_TEXT,
    READINGS,
    Findings,
    digits,
    figure_number,
    number_words,
    value_words,
)
from asyncfed.reproduce.markdown import bullets, table, wrapped
from asyncfed.reproduce.paper_figures import ten_figures
from asyncfed.store.json_files import read_json

SETTLED = 1.1


def summary(entries: list[dict[str, Any]], settings: dict[str, Any], figures: list[FigureData]) -> str:
    """The text of `docs/paper.md`, of a whole reproduction: what `verdicts.json`, `settings.json` and `data/` hold."""
    findings = Findings(entries, settings, figures)
    parts = [
        "# The paper, reproduced and tested",
        *_what_was_reproduced(findings),
        "## The ten figures",
        *ten_figures(findings),
        "## The verdicts",
        *_verdicts(findings),
        "## What differs from the paper, and why",
        bullets([*_what_is_run_differently(findings), *_what_is_measured_differently(findings)]),
        "## What the paper does not show",
        bullets(_not_shown(findings)),
    ]
    return "\n\n".join(parts) + "\n"


# ---- what was run ----------------------------------------------------------------------------------------------


def _what_was_reproduced(findings: Findings) -> list[str]:
    settings = findings.settings
    shorter = settings["rounds divided by"]
    versions = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    return [
        wrapped(
            "Forootani & Iervolino's simulations, run again and measured. The command is "
            f"`{settings['command']}`: {len(settings['runs'])} runs, {_seeds(findings)}; {versions}. This page is "
            "written from their results by `python -m asyncfed.reproduce.paper_page`; the interactive one is "
            "`runs/reproduce/report.html`. How to make one figure, and what else is written, is in the "
            "[guide](guide.md#the-paper-again)."
        ),
        wrapped(
            f"{_task(findings, 'regression', 2)} {_task(findings, 'svm', 8)} Both have "
            f"{preset('svm')().num_clients} clients, AFL and synchronous learning, and 20 to 90 % of the clients at "
            "work." + (f" This run had the paper's rounds divided by {shorter}." if shorter > 1 else "")
        ),
        wrapped(
            "The ten figures are drawn in two readings. **Published** is what the published scripts do: rounds wait "
            "for their slowest client, clients never download, and the loss is that on client 0, its batches "
            "reshuffled for every measurement. **Text** is Algorithm 1 as written: clients download, the server merges "
            "on arrival in virtual time and averages every client's latest model, and the loss is the objective over "
            "all clients."
        ),
    ]


def _seeds(findings: Findings) -> str:
    """Which seeds, and which figures have them."""
    words = []
    for seeds, together in groupby(findings.settings["figures"].items(), key=lambda item: item[1]["seeds"]):
        numbers = [figure_number(name) for name, _ in together]
        words.append(f"seeds {', '.join(map(str, seeds))} for figures {numbers[0]} to {numbers[-1]}")
    return "; ".join(words)


def _task(findings: Findings, name: str, figure: int) -> str:
    experiment = preset(name)()
    work, rounds = experiment.strategy.work, findings.series(figure, 1, "AFL").x[-1]
    data = to_plain(experiment.data)
    samples = f"{data['num_samples']:,} samples of {data['num_features']} features"
    return (
        f"The {'SVM' if name == 'svm' else name} has {samples} and {rounds:,.0f} rounds of {work.epochs} local epochs "
        f"(batches of {work.batch_size}, base rate {work.learning_rate:g})."
    )


# ---- the verdicts ----------------------------------------------------------------------------------------------


def _verdicts(findings: Findings) -> list[str]:
    of_claims: dict[str, dict[str, Mapping[str, Any]]] = {}
    for found in findings.entries:
        of_claims.setdefault(found["id"], {})[found["reading"]] = found
    rows = []
    for of_readings in of_claims.values():
        either = next(iter(of_readings.values()))
        cells = [_cell(of_readings[reading]) if reading in of_readings else "" for reading in READINGS]
        rows.append((either["claim"], *cells, either["statistic"]))
    return [
        wrapped(
            "A claim holds, or does not, if the 95 % interval over seeds (in brackets) lies wholly on one side of the "
            "limit; otherwise, and where the paper names no limit, it is undecided. The limits are ours. Four choices "
            "were made after results had been seen: fairness is measured by merges of the fastest third over the "
            "slowest third, where Jain's index against 0.9 gave no answer; figures 11 and 12 have 5 seeds instead of "
            "3; the SVM's sensitivity is measured at delays 100 times the laptop's, in 120 rounds (in 200 rounds the "
            "ratio was just above 1); and in the published reading, ratios of the change from round to round have the "
            "interval of independent runs, not that of runs paired by seed, which is narrower and decides some of "
            "these claims otherwise (see below). × marks a ratio. An empty cell: the claim is about the other reading. "
            + " ".join(_count(findings, reading) for reading in READINGS)
        ),
        table(("claim", "published reading", "text's reading", "the number"), rows),
    ]


def _cell(found: Mapping[str, Any]) -> str:
    interval = "" if found["low"] is None else f" ({digits(found['low'])} to {digits(found['high'])})"
    return f"**{found['verdict']}**, {number_words(found)}{interval}"


def _count(findings: Findings, reading: Reading) -> str:
    counts = Counter(found["verdict"] for found in findings.entries if found["reading"] == reading)
    listed = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
    return f"In the {reading} reading, of {counts.total()}: {listed}."


# ---- what differs ----------------------------------------------------------------------------------------------


def _what_is_run_differently(findings: Findings) -> list[str]:
    number, last = findings.number, findings.last
    waiting, merging = last(3, 0, "virtual time"), last(3, 1, "virtual time")
    rates = {task: _mean_rate(task) for task in ("regression", "svm")}
    return [
        (
            "**The published scripts never download.** Each client trains its own model on for ever and the server "
            f"only mixes them. A round waits for all its clients, so no time is saved: {waiting} s for the regression "
            f"of figure 3, against {merging} s when the server merges on arrival."
        ),
        (
            f"**The published split is IID.** {findings.reason('data-non-iid', 'published')} So fluctuations in the "
            "published figures have other causes: the scripts' SVM loss changes by "
            f"{number('svm-fluctuates', 'published')}, that of the text's reading, whose split is non-IID, by "
            f"{number('svm-fluctuates', 'text')}."
        ),
        (
            "**Two rates are compared, not two algorithms.** AFL's rate falls with the square root of the local epoch, "
            f"that of synchronous learning is constant. Averaged over the epochs, AFL's is {rates['regression']} "
            f"of it (SVM: {rates['svm']}); in the published reading synchronous learning needs "
            f"{number('regression-sync-faster-early', 'published')} AFL's rounds (SVM: "
            f"{number('svm-sync-faster', 'published')}). Figure 11 gives all the same rate."
        ),
    ]


def _mean_rate(task: str) -> str:
    epochs = preset(task)().strategy.work.epochs
    return format_number(fmean((epoch + 1) ** -0.5 for epoch in range(epochs)))


def _what_is_measured_differently(findings: Findings) -> list[str]:
    number, last = findings.number, findings.last
    noise = PaperRegression().noise
    return [
        (
            f'**No loss can settle "around 10⁻²".** The noise has standard deviation {noise:g}, so the least mean '
            f"squared error is about {noise**2:.2g}: synchronous learning ends at "
            f"{number('regression-sync-hundredth', 'published')} (published) and "
            f"{number('regression-sync-hundredth', 'text')} (text)."
        ),
        (
            "**The squared loss.** The text's has a ½, PyTorch's has none: the scripts' losses are twice the text's "
            f"({last(2, 0, 'AFL')} and {last(2, 1, 'AFL')} at the end of figure 2), and so are their steps."
        ),
        (
            "**The published loss is noisy by itself.** The scripts measure it on client 0's rows in batches of 32, "
            "shuffled anew each time, and the last, shorter batch counts as a full one. How far the loss changes from "
            "round to round therefore depends on how many rows client 0 happens to have, and each published run has "
            f"data of its own. For the regression: {findings.reason('regression-afl-varies', 'published')} For "
            f"the SVM: {findings.reason('svm-afl-varies', 'published')}"
        ),
        (
            "**Wall-clock time** is Σ (longest − shortest) in the text and Σ longest in the scripts: "
            f"{last(3, 0, BY_TEXT)} s and {last(3, 0, BY_SCRIPTS)} s for the same runs. Neither is the time that "
            "passes when the server does not wait."
        ),
        (
            "**Energy** is the power of every client times its duration in the text, and one device's power times the "
            f"wall-clock time in the scripts: {last(4, 0, BY_TEXT)} Wh and {last(4, 0, BY_SCRIPTS)} Wh for the same "
            "runs."
        ),
        (
            "**Seconds** are drawn from delays that imitate the authors' laptop (log-normal). They are virtual: they "
            "say how long clients would take, not how long this machine took."
        ),
    ]


# ---- what is not shown -----------------------------------------------------------------------------------------


def _not_shown(findings: Findings) -> list[str]:
    last, reason = findings.last, findings.reason
    slowest = format_number(findings.series(15, 2, "SVM").x[-1])
    return [
        f"**Time, light delays** (figure 11). {reason('afl-faster-light-delays', 'text')}",
        f"**Time, heavy-tailed delays** (figure 11). {reason('afl-faster-heavy-delays', 'text')}",
        f"**Bytes** (figure 12, which has energy too). {_after_the_same_bytes(findings)}",
        f"**Aggregate under staleness** (figure 13). {_under_staleness(findings)}",
        f"**Splits** (figure 14). Rounds until AFL's objective stays within 10 % of its end: {_settling(findings)}.",
        (
            f"**Sensitivity** (figure 15). {reason('svm-more-sensitive', 'text')} With a fifth of the clients "
            f"{slowest} times slower the regression's objective grows to {last(15, 2, 'regression')} times, the SVM's "
            f"to {last(15, 2, 'SVM')} times what it is with none slow."
        ),
        (
            f"**Participation** (figure 16). {reason('participation-fair', 'text')} At the largest spread of speeds "
            f"AFL's model ends {last(16, 2, 'AFL, latest')} from the optimum that weighs all clients equally, the "
            f"synchronous one {last(16, 2, 'synchronous')}."
        ),
    ]


def _after_the_same_bytes(findings: Findings) -> str:
    sent = findings.series(12, 0, "synchronous").x[-1] / 1000
    ends = [
        f"{findings.last(12, panel, 'AFL, latest')} with latest models, {findings.last(12, panel, 'AFL, mixing')} with "
        f"mixing and {findings.last(12, panel, 'synchronous')} with synchronous learning"
        for panel in (0, 2)
    ]
    return f"After the same {sent:.0f} kB the regression's objective is {ends[0]}, the SVM's {ends[1]}."


def _under_staleness(findings: Findings) -> str:
    """Rule by rule, at the paper's rate: the staleness from which it diverges, or where it leads."""
    words = []
    for series in findings.figure(13).panels[0].series:
        lost = [x for x, y in zip(series.x, series.y, strict=True) if y is None]
        if lost:
            words.append(f'"{series.label}" diverges from a staleness of {min(lost):g} on')
        else:
            ends = [f"{value_words(series.y[end])} (staleness {series.x[end]:g})" for end in (0, -1)]
            words.append(f'"{series.label}" goes from {" to ".join(ends)}')
    return f"The objective after as many rounds, at the paper's rate: {'; '.join(words)}."


def _settling(findings: Findings) -> str:
    return "; ".join(
        f"{panel.title} " + ", ".join(f'{_settled_at(series)} with "{series.label}"' for series in panel.series)
        for panel in findings.figure(14).panels
    )


def _settled_at(series: Series) -> str:
    """The round after the last one above 1.1 times the end.

    >>> _settled_at(Series(label="", x=(1.0, 2.0, 3.0, 4.0), y=(9.0, 1.0, 1.2, 1.0)))
    '4'
    """
    end = series.y[-1]
    if end is None:
        return "never"
    apart = [place for place, y in enumerate(series.y) if y is None or y > SETTLED * end]
    return format_number(series.x[apart[-1] + 1 if apart else 0])


# ---- the command -----------------------------------------------------------------------------------------------


def summary_of(folder: Path) -> str:
    """The summary of what `asyncfed reproduce --out-dir folder` wrote."""
    settings = read_json(folder / "settings.json")
    figures = [load(folder / "data" / f"{name}.json") for name in settings["figures"]]
    return summary(read_json(folder / "verdicts.json"), settings, figures)


def main() -> None:
    """Print the summary of the folder that is named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m asyncfed.reproduce.paper_page FOLDER, the --out-dir of `asyncfed reproduce`")
    try:
        print(summary_of(Path(sys.argv[1])), end="")
    except AsyncFedError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
