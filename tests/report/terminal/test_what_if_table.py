"""A recorded run beside other strategies, in a terminal."""

from io import StringIO

from rich.console import Console

from asyncfed.report.terminal.what_if_table import what_if_table


def test_a_row_for_each_run(make_run):
    console = Console(width=100, record=True, file=StringIO())
    console.print(what_if_table({"recorded": make_run(), "none": make_run((9.0,), verdict="interrupted")}))
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["recorded", "1", "4", "s", "10", "0", "1.5", "finished"] in rows
    assert ["none", "9", "0", "s", "0", "-", "-", "interrupted"] in rows
