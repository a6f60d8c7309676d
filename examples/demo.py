"""AFL against synchronous federated learning where two clients in ten are slow.

    python examples/demo.py            less than half a minute on two cores
    python examples/demo.py --quick    a few seconds: two seeds, fewer rounds

The paper's regression: 10 clients, 5 at work at a time. Everybody's tickets take about a second (log-normal), but two
clients are ten times slower. Synchronous rounds wait for whoever is slowest; AFL merges each update as it arrives.

The paper changes two things at once: asynchrony, and a learning rate that decays within each ticket and with the spread
of delays. Here each comes with and without the other, so that one can see which of them does what.
"AFL" is Algorithm 1 to the letter, "AFL mixing" the rule of the published server.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import asyncfed as af
from asyncfed.analysis.comparison import Comparison, compare
from asyncfed.core.record import replace
from asyncfed.delays import Delays, Device, LogNormal
from asyncfed.report.figures.comparison_figure import draw_comparison, draw_time_to_target
from asyncfed.report.figures.run_figure import draw_run
from asyncfed.report.terminal.run_tables import comparison_row, comparison_table, describe_ratio
from asyncfed.strategies import Strategy
from asyncfed.strategies.schedules import ConstantRate, DelayAware

FOLDER = Path("runs/demo")
SLOW_CLIENTS = Delays(
    compute=LogNormal(median=1.0, sigma=0.5),
    devices=(Device(name="slow", share=0.2, slowness=10.0),),
)
BASELINE = "sync, fixed"
INTRODUCTION = """\
AFL against synchronous FL: 10 clients, 5 at work at a time, 2 of the 10 ten
times slower. "fixed" is a constant learning rate, "decayed" the paper's
delay-aware one. "AFL" averages every client's latest model, "AFL mixing" moves
halfway to each arriving model."""


def strategies() -> dict[str, Strategy]:
    sync = af.presets.regression(strategy="sync").strategy
    afl = af.presets.regression(strategy="afl").strategy
    mixing = af.presets.regression(strategy="afl_mixing").strategy
    fixed, decayed = ConstantRate(), DelayAware()
    return {
        BASELINE: sync,
        "sync, decayed": replace(sync, schedule=decayed),
        "AFL, fixed": replace(afl, schedule=fixed),
        "AFL, decayed": afl,
        "AFL mixing, fixed": replace(mixing, schedule=fixed),
    }


def compared(console: Console, experiment: af.Experiment, num_seeds: int) -> Comparison:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("running", total=num_seeds * len(strategies()))

        def watch(done: int, total: int, label: str, seed: int) -> None:
            progress.update(bar, completed=done, description=f"{label}, seed {seed}")

        return compare(experiment, strategies(), range(num_seeds), watch=watch)


def findings(comparison: Comparison) -> list[str]:
    """What the table says, in sentences whose numbers are read from it."""
    pairs = (
        ("AFL, fixed", "sync, fixed"),
        ("AFL, decayed", "sync, decayed"),
        ("AFL, decayed", "sync, fixed"),
        ("AFL mixing, fixed", "sync, fixed"),
    )
    return [
        f"{one} / {other}: rounds × {describe_ratio(comparison.ratio(one, other, 'round'))}, "
        f"time × {describe_ratio(comparison.ratio(one, other, 'elapsed'))}"
        for one, other in pairs
    ]


def written_report(comparison: Comparison, verdict: str) -> str:
    head = ["strategy", "final objective", "rounds", "virtual time", "bytes", "energy", "x faster"]
    rows = [head, ["---"] * len(head), *(comparison_row(comparison, label, BASELINE) for label in comparison.labels)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    ratios = "\n".join(f"- {line}" for line in findings(comparison))
    return f"""# AFL against synchronous FL with slow clients

{INTRODUCTION}

{len(comparison.seeds)} seeds, each with the same data, split and devices for all strategies. Clients' data: {verdict}.
Costs are those of making 95 % of the progress of the best strategy with the seed: an objective of about
{comparison.target:.3g}.

{table}

Time is virtual time. Against each other, paired by seed (below 1: the first is cheaper; 95 % intervals in brackets):

{ratios}

![all strategies on four axes](comparison.png)
![cost of reaching the target](time_to_target.png)
![one AFL run](afl.png)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="AFL against synchronous FL where some clients are slow.")
    parser.add_argument("--quick", action="store_true", help="two seeds and fewer rounds")
    quick = parser.parse_args().quick
    console = Console()
    FOLDER.mkdir(parents=True, exist_ok=True)
    experiment = af.presets.regression(delays=SLOW_CLIENTS, rounds=150 if quick else 400)
    console.print(INTRODUCTION)
    verdict = experiment.measure_heterogeneity().verdict
    console.print(f"clients' data: {verdict}")
    comparison = compared(console, experiment, num_seeds=2 if quick else 5)
    console.print(comparison_table(comparison, BASELINE))
    console.print("\nTo reach the target, paired by seed (below 1: the first is cheaper):")
    for line in findings(comparison):
        console.print(f"  {line}", highlight=False)
    one_run = af.run(replace(experiment, strategy=strategies()["AFL, fixed"]), out=FOLDER / "afl.sqlite", force=True)
    draw_run(one_run).savefig(FOLDER / "afl.png")
    draw_comparison(comparison).savefig(FOLDER / "comparison.png")
    draw_time_to_target(comparison, BASELINE).savefig(FOLDER / "time_to_target.png")
    (FOLDER / "REPORT.md").write_text(written_report(comparison, verdict))
    console.print(f"\nLook at {FOLDER}/REPORT.md, comparison.png, time_to_target.png and afl.png; ", end="")
    console.print(f"{FOLDER}/afl.sqlite is the journal of the run in afl.png.")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("Stopped by Ctrl-C; there is no new report.")
