from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from asyncfed import presets, run
from asyncfed.analysis.protocols import Ratio
from asyncfed.core.errors import ConfigError
from asyncfed.report.terminal.run_tables import comparison_row, comparison_table, describe_ratio, run_table


def text_of(table, width=100):
    console = Console(width=width, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def line_of(text, word):
    return next(line for line in text.splitlines() if word in line)


def test_run_table_says_what_the_run_came_to(make_run):
    text = text_of(run_table(make_run()))
    assert "finished: all rounds are done" in text
    assert "4 s" in line_of(text, "virtual time")
    assert "2 kB, 1.6 kB" in line_of(text, "sent down, up")
    assert "mean 1.5, largest 3" in line_of(text, "staleness")
    assert "90 J" in line_of(text, "energy")


def test_run_table_says_divergence_once(make_run):
    table = run_table(make_run([9.0, np.nan], verdict="diverged", reason="diverged: the norm is nan"))
    text = text_of(table)
    assert text.count("diverged") == 1
    assert "–" in line_of(text, "objective")


def test_run_table_of_a_run_without_rounds(make_run):
    assert "none was completed" in text_of(run_table(make_run([9.0])))


def test_run_table_of_a_real_run():
    real = run(presets.regression(rounds=2))
    text = text_of(run_table(real))
    assert line_of(text, "merged updates").split()[-2] == "10"


def test_comparison_rows(comparison):
    rows = {label: comparison_row(comparison, label, "slow") for label in comparison.labels}
    assert rows["slow"][2:4] == ["2", "26 s"]
    assert rows["slow"][-1] == "baseline"
    # 16 s against 4 s and 36 s against 4 s: the geometric mean of 4 and 9 is 6
    assert rows["fast"][-1].startswith("6 (")
    assert rows["fast"][4:6] == ["3.6 kB", "90 J"]
    assert rows["late"][2] == "2, 1 never"
    assert rows["late"][-1] == "1, 1 seed left out"
    assert rows["wild"][1:] == ["DIVERGED", "never", "never", "never", "never", "target never reached"]
    # the target was reached, only not by the baseline
    assert comparison_row(comparison, "slow", "wild")[-1] == "no seed where both reached it"


def test_some_diverged_runs_are_counted(comparison):
    comparison.runs["late"][1] = comparison.runs["wild"][1]
    assert comparison_row(comparison, "late", "slow")[1] == "1, 1 of 2 DIVERGED"


def test_comparison_table_fits_a_terminal_and_names_baseline_and_target(comparison):
    lines = text_of(comparison_table(comparison, "slow"), width=80).splitlines()
    assert "objective ≤ 1.5, 2 seeds" in lines[0]
    assert "than slow" in " ".join(lines)
    rows = lines[: next(number for number, line in enumerate(lines) if line.startswith("x faster"))]
    assert sum(line.startswith(tuple(comparison.labels)) for line in rows) == 4


def test_unknown_baseline_is_refused(comparison):
    with pytest.raises(ConfigError, match=r'no strategy "slwo"\. Did you mean "slow"'):
        comparison_table(comparison, "slwo")


def test_ratio_words():
    nan = float("nan")
    assert describe_ratio(Ratio(3.0, nan, nan, 1, 0)) == "3"
    assert describe_ratio(Ratio(nan, nan, nan, 0, 3)) == "target never reached"
    assert describe_ratio(Ratio(3.0, 2.0, 4.5, 3, 2)) == "3 (2–4.5), 2 seeds left out"


def test_a_comparison_on_test_rows_shows_them_beside_the_metric(comparison):
    for of_seed in comparison.runs.values():
        for outcome in of_seed.values():
            outcome.evaluations["test_loss"] = 2.0 * outcome.objective
    assert comparison_row(comparison, "slow", "slow")[1:3] == ["1 ± 0", "2"]
    lines = text_of(comparison_table(comparison, "slow"), width=80).splitlines()
    assert "test loss" in lines[2]
    assert "wild diverged with seeds 0, 1" in " ".join(lines)


def test_a_target_that_the_start_meets_is_no_race(comparison):
    easy = replace(comparison, asked_target=100.0)
    assert comparison_row(easy, "fast", "slow")[-1] == "–"
