"""The figure of a run's clients."""

import numpy as np

from asyncfed.report.figures.client_figure import DrawableClientTable, client_figure, draw_clients


def test_clients_are_sorted_by_loss_and_the_worst_is_marked(made_clients):
    (panel,) = client_figure({"run": made_clients([3.0, 0.5, np.nan, 2.0])}).panels
    together, alone, worst = panel.series
    assert together.y == (0.5, 2.0, 3.0, None)
    assert alone.y == (1.0, 1.0, 1.0, 1.0)
    assert worst.y == (None, None, 3.0, None)
    assert "Clients in this order: shop 1, shop 3, shop 0, shop 2." in panel.note


def test_many_clients_are_not_named(made_clients):
    (panel,) = client_figure({"run": made_clients(np.arange(1.0, 81.0))}).panels
    assert "in this order" not in panel.note


def test_a_panel_for_each_of_the_first_four_runs(made_clients):
    tables = {f"run {number}": made_clients([1.0, 2.0]) for number in range(5)}
    assert [panel.title for panel in client_figure(tables).panels] == ["run 0", "run 1", "run 2", "run 3"]


def test_a_drawable_table_draws_itself(made_clients):
    table = made_clients([3.0, 0.5])
    drawn = DrawableClientTable(table.columns, table.part).plot()
    assert [axes.get_xlabel().strip() for axes in drawn.axes] == ["clients, smallest loss first"]
    assert len(draw_clients(table).axes) == 1
