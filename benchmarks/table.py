"""A large table: the time to read it against pandas, and what a run costs up to its training."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from asyncfed.data.raw_table import MISSING
from asyncfed.data.table_reader import _read, read_table
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

GOAL_OVER_PANDAS = 2.0
GOAL_CPU_SECONDS = 15.0
GOAL_MEGABYTES = 1000.0
GOAL_BAR_SECONDS = 1.0
ROOT = Path(__file__).parent.parent


def measure(rows: int = 1_000_000, repeats: int = 3) -> Outcome:
    """Read a table of 20 columns in turn with pandas, from CSV and from Parquet; then begin a run on the CSV."""
    import pandas

    with TemporaryDirectory() as folder:
        csv, parquet = Path(folder) / "table.csv", Path(folder) / "table.parquet"
        _write_table(csv, parquet, rows)
        jobs = {
            "pandas": lambda: pandas.read_csv(csv),
            "asyncfed": lambda: _read_anew(csv),
            "pandas, Parquet": lambda: pandas.read_parquet(parquet),
            "asyncfed, Parquet": lambda: _read_anew(parquet),
        }
        spent = best_in_turn(jobs, repeats)
        out = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "benchmarks.table_start", str(csv), "sold", "site", str(out)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        start = json.loads(out.read_text())
    over = spent["asyncfed"].cpu / spent["pandas"].cpu
    over_parquet = spent["asyncfed, Parquet"].cpu / spent["pandas, Parquet"].cpu
    cpu, memory, bar = start["cpu_seconds"], start["peak_megabytes"], start["bar_after_seconds"]
    size = f"{rows:,} x 20"
    lines = [
        Line(f"read CSV {size} / pandas", f"{spent['asyncfed'].cpu:.2f} s CPU", over,
             f"<= {GOAL_OVER_PANDAS:g}", over <= GOAL_OVER_PANDAS),
        Line(f"read Parquet {size} / pandas", f"{spent['asyncfed, Parquet'].cpu:.2f} s CPU", over_parquet),
        Line(f"run {size} up to training", f"{cpu:.1f} s CPU", None, f"<= {GOAL_CPU_SECONDS:g} s",
             cpu <= GOAL_CPU_SECONDS),
        Line("its peak memory", f"{memory:.0f} MB", None, f"<= {GOAL_MEGABYTES:g} MB", memory <= GOAL_MEGABYTES),
        Line("until its bar is there", f"{bar:.2f} s", None, f"<= {GOAL_BAR_SECONDS:g} s", bar <= GOAL_BAR_SECONDS),
    ]  # fmt: skip
    figures = {"seconds": {name: each._asdict() for name, each in spent.items()}, "start": start, "over_pandas": over}
    return Outcome(lines, figures)


def _read_anew(path: Path) -> None:
    _read.cache_clear()
    read_table(str(path), MISSING, ())
    _read.cache_clear()


def _write_table(csv: Path, parquet: Path, rows: int) -> None:
    """A site, 15 numbers, three texts and a target."""
    import pandas

    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 15)).round(4)
    columns = {"site": rng.choice([f"site {i}" for i in range(20)], rows)}
    columns |= {f"x{i}": x[:, i] for i in range(15)}
    for name, levels in (("colour", ["red", "green", "blue"]), ("size", ["S", "M", "L"]), ("member", ["yes", "no"])):
        columns[name] = rng.choice(levels, rows)
    columns["sold"] = (3.0 + x.sum(axis=1) + rng.normal(size=rows)).round(3)
    frame = pandas.DataFrame(columns)
    frame.to_csv(csv, index=False)
    frame.to_parquet(parquet)
