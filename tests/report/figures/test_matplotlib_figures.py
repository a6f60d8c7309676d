"""Figures on paper, and the looks they share with the page."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.report.figures import colours
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.matplotlib_figures import draw_figure, save_png_and_pdf
from asyncfed.report.figures.series_style import BOLD, series_key, series_styles, y_axis_range


def figure_of(*series, **settings):
    return FigureData("f", "F", "", (Panel("P", "x", "y", series, **settings),))


def line(label, group="", **settings):
    return Series(label, (0.0, 1.0, 2.0), (3.0, 2.0, 1.0), group=group, **settings)


# ---- looks -----------------------------------------------------------------------------------------------------

KEYS = st.tuples(st.sampled_from("abcd"), st.sampled_from("123456789"))


@given(st.dictionaries(KEYS, st.sampled_from(["line", "points", "bar"]), min_size=1))
def test_no_two_series_look_alike(kinds):
    found = series_styles(figure_of(*(line(label, group, kind=kind) for (group, label), kind in kinds.items())))
    assert list(found) == list(kinds)
    told_by = {(look.kind, look.colour, look.dash if look.kind == "line" else ()) for look in found.values()}
    assert len(told_by) == len(kinds)


def test_points_share_the_colour_of_the_line_they_belong_to():
    dots = line("published run, 20 %", "20 %", kind="points")
    found = series_styles(figure_of(line("20 %", "20 %"), line("50 %", "50 %"), dots))
    assert found[series_key(dots)].colour == found["20 %", "20 %"].colour != found["50 %", "50 %"].colour


def test_the_longer_list_gets_the_colours(made_figures):
    readings = series_styles(figure_of(*(line(f, r) for r in ("text", "scripts") for f in ("20 %", "50 %", "90 %"))))
    assert readings["text", "20 %"].colour == readings["scripts", "20 %"].colour
    assert readings["text", "20 %"].dash != readings["scripts", "20 %"].dash
    assert len({look.colour for look in readings.values()}) == 3


def test_a_single_bold_series_is_drawn_in_ink(made_figures):
    found = series_styles(made_figures[0])
    assert (found["", "mean"].colour, found["", "mean"].width) == (colours.INK, BOLD)
    assert colours.INK not in {look.colour for key, look in found.items() if key[1] != "mean"}


def test_several_bold_series_keep_their_colours():
    found = series_styles(figure_of(line("AFL", emphasis=True), line("sync", emphasis=True)))
    assert [look.colour for look in found.values()] == list(colours.LINE_COLOURS[:2])


def test_a_series_looks_the_same_in_every_panel(made_figures):
    one, two = draw_figure(made_figures[1]).axes
    assert [drawn.get_color() for drawn in two.lines] == [drawn.get_color() for drawn in one.lines[:2]]


def test_a_logarithmic_axis_fits_the_lines_and_leaves_out_infinity():
    wild = Series("wild", (0.0, 1.0, 2.0), (1.0, 1e300, None))
    low, high = y_axis_range(figure_of(wild, y_log=True).panels[0])
    assert low < 1.0
    assert 1e8 <= high < 1e9
    assert y_axis_range(figure_of(wild).panels[0]) is None
    assert y_axis_range(figure_of(Series("none", (0.0,), (-1.0,)), y_log=True).panels[0]) is None


# ---- on paper --------------------------------------------------------------------------------------------------


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


def test_files_have_embedded_fonts_and_are_the_same_again(made_figures, tmp_path):
    first = save_png_and_pdf(made_figures[2], tmp_path / "one")
    again = save_png_and_pdf(made_figures[2], tmp_path / "two")
    assert [file.name for file in first] == ["others.png", "others.pdf"]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in again]
    assert b"/FontFile2" in first[1].read_bytes()
    assert b"/Type3" not in first[1].read_bytes()
