import pytest

from asyncfed.report.figures.communication_figures import study_figures
from asyncfed.report.figures.matplotlib_figures import draw_figure


def test_a_problem_has_costs_links_and_other_strategies(communication_study):
    figures = study_figures(communication_study[1])
    assert [figure.name for figure in figures] == ["regression_costs", "regression_links", "regression_strategies"]
    costs, links, others = figures
    assert [panel.x_label for panel in costs.panels] == ["bytes up", "bytes up and down", "uploads"]
    assert [panel.title for panel in links.panels] == ["1 Mbit/s up, 10 Mbit/s down", "10 Mbit/s up, 100 Mbit/s down"]
    assert [panel.title for panel in others.panels] == ["afl"]
    for figure in figures:
        draw_figure(figure)
        assert figure.rerun.startswith("asyncfed communication --problems regression")


def test_lines_fall_and_have_a_band(communication_study):
    panel = study_figures(communication_study[1])[0].panels[0]
    lines = {line.label: line for line in panel.series}
    assert list(lines) == ["none", "top k", "top k ef"]
    assert lines["top k ef"].y[0] > 0.5 > 0.06 > lines["top k ef"].y[-1]
    assert max(lines["none"].x) == pytest.approx(50 * max(lines["top k ef"].x))
    assert len(lines["top k"].low) == len(lines["top k"].y)
    assert [line.emphasis for line in panel.series] == [True, False, False]
