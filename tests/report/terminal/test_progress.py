"""Progress bars."""

from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from asyncfed.core.types import Budget
from asyncfed.report.terminal.progress import counting_bar, run_bar


@pytest.fixture
def console():
    return Console(width=120, file=StringIO(), force_terminal=True, color_system=None)


@pytest.mark.parametrize(
    ("budget", "shown"),
    [(Budget(rounds=8), "2/8 rounds"), (Budget(updates=40), "10/40 updates"), (Budget(elapsed=9.0), "3/9 s")],
)
def test_a_run_is_measured_by_what_its_budget_limits(console, budget, shown):
    now = SimpleNamespace(rounds=2, updates=10, elapsed=3.0, objective=0.25)
    with run_bar(console, SimpleNamespace(name="small", budget=budget)) as watch:
        watch(now)
    text = console.file.getvalue()
    assert shown in text
    assert "loss 0.25  virtual time 3.0 s" in text


def test_a_bar_that_counts(console):
    with counting_bar(console, "runs", 4) as watch:
        watch(3)
    assert "3/4" in console.file.getvalue()
