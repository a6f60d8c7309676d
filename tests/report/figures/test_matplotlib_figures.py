"""Figures for print."""

from itertools import pairwise

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.matplotlib_figures import draw_figure, save_png_and_pdf


def figure_of(*series, **settings):
    return FigureData("f", "F", "", (Panel("P", "x", "y", series, **settings),))


def line(label, group="", **settings):
    return Series(label, (0.0, 1.0, 2.0), (3.0, 2.0, 1.0), group=group, **settings)


def test_axes_titles_notes_and_legend_are_there(made_figures):
    figure = draw_figure(made_figures[0])
    (axes,) = figure.axes
    assert (axes.get_title(loc="left"), axes.get_ylabel(), axes.get_yscale()) == ("Loss", "loss, MSE", "log")
    assert axes.get_xlabel().strip() == "round"
    assert "The noise floor is 0.04." in [text.get_text() for text in axes.texts]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [f"{n}0 %" for n in range(1, 10)] + ["mean"]


def test_a_short_logarithmic_axis_has_readable_ticks():
    figure = draw_figure(figure_of(line("a"), y_log=True))
    figure.canvas.draw()
    shown = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert {"1", "2"} <= set(shown)


def test_the_legend_names_the_group_where_the_label_does_not(made_figures):
    names = [text.get_text() for text in draw_figure(made_figures[1]).legends[0].get_texts()]
    assert names == ["AFL (text)", "sync (text)", "AFL (scripts)", "sync (scripts)"]


def test_lines_have_bands_and_gaps(made_figures):
    points = draw_figure(made_figures[2]).axes[1]
    gaps = points.lines[-1]
    assert np.isnan(gaps.get_ydata()).tolist() == [False, True, False, False]
    assert len(points.collections) >= 1


def test_bars_stand_beside_each_other(made_figures):
    bars = draw_figure(made_figures[2]).axes[0].patches
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)
    assert len(edges) == 4
    assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(edges))


def test_nothing_is_drawn_over_something_else(made_figures):
    figure = draw_figure(made_figures[0])
    figure.canvas.draw()
    (axes,) = figure.axes
    note, legend = axes.texts[0].get_window_extent(), figure.legends[0].get_window_extent()
    assert not note.overlaps(legend)
    assert not note.overlaps(axes.get_window_extent())
    assert not axes.title.get_window_extent().overlaps(figure.texts[0].get_window_extent())


@pytest.mark.parametrize("count", [0, 5])
def test_a_page_holds_one_to_four_panels(made_figures, count):
    wrong = replace(made_figures[0], panels=made_figures[0].panels * count)
    with pytest.raises(ConfigError, match=f'figure "fractions" has {count} panels; a page holds 1 to 4'):
        draw_figure(wrong)


@pytest.mark.slow
def test_files_have_embedded_fonts_and_are_the_same_again(made_figures, tmp_path):
    first = save_png_and_pdf(made_figures[2], tmp_path / "one")
    again = save_png_and_pdf(made_figures[2], tmp_path / "two")
    assert [file.name for file in first] == ["others.png", "others.pdf"]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]
    assert b"/FontFile2" in first[1].read_bytes()
    assert b"/Type3" not in first[1].read_bytes()
