"""The figures of a page about runs."""

import numpy as np

from asyncfed.report.page.run_page_figures import run_figures


def test_figures_of_runs_have_units_and_gaps_where_a_run_diverged(make_run):
    loss, staleness, participation = run_figures({"good": make_run(), "bad": make_run((9.0, 1e9, np.nan))})
    labels = [panel.x_label for panel in loss.panels]
    assert labels == ["rounds", "virtual time, s", "communication, down and up, kB", "energy of computing, J"]
    assert loss.panels[2].series[0].x == (0.0, 1.8, 3.6)
    assert loss.panels[0].series[1].y == (9.0, 1e9, None)
    assert staleness.panels[1].series[0].y == (3.0, 3.0)
    assert participation.panels[0].series[0].y == (0.0, 1.0, 2.0, 3.0)


def test_participation_of_many_clients_is_counted(make_run):
    (panel,) = run_figures({"many": make_run(num_clients=60)})[2].panels
    assert (panel.x_label, panel.y_label) == ("merged updates", "clients")
    assert sum(panel.series[0].y) == 60
