"""The colour, dashes and width of each series."""

from hypothesis import given
from hypothesis import strategies as st

from asyncfed.report.figures import colours
from asyncfed.report.figures.figure_data import FigureData, Panel, Series
from asyncfed.report.figures.matplotlib_figures import draw_figure
from asyncfed.report.figures.series_style import BOLD, series_key, series_styles, y_axis_range


def figure_of(*series, **settings):
    return FigureData("f", "F", "", (Panel("P", "x", "y", series, **settings),))


def line(label, group="", **settings):
    return Series(label, (0.0, 1.0, 2.0), (3.0, 2.0, 1.0), group=group, **settings)


KEYS = st.tuples(st.sampled_from("abcd"), st.sampled_from("123456789"))


@given(st.dictionaries(KEYS, st.sampled_from(["line", "points", "bar"]), min_size=1))
def test_no_two_series_look_alike(kinds):
    found = series_styles(figure_of(*(line(label, group, kind=kind) for (group, label), kind in kinds.items())))
    assert list(found) == list(kinds)
    styles = {(style.kind, style.colour, style.dash if style.kind == "line" else ()) for style in found.values()}
    assert len(styles) == len(kinds)


def test_points_share_the_colour_of_the_line_they_belong_to():
    dots = line("published run, 20 %", "20 %", kind="points")
    found = series_styles(figure_of(line("20 %", "20 %"), line("50 %", "50 %"), dots))
    assert found[series_key(dots)].colour == found["20 %", "20 %"].colour != found["50 %", "50 %"].colour


def test_the_longer_list_gets_the_colours(made_figures):
    readings = series_styles(figure_of(*(line(f, r) for r in ("text", "scripts") for f in ("20 %", "50 %", "90 %"))))
    assert readings["text", "20 %"].colour == readings["scripts", "20 %"].colour
    assert readings["text", "20 %"].dash != readings["scripts", "20 %"].dash
    assert len({style.colour for style in readings.values()}) == 3


def test_a_single_bold_series_is_drawn_in_ink(made_figures):
    found = series_styles(made_figures[0])
    assert (found["", "mean"].colour, found["", "mean"].width) == (colours.INK, BOLD)
    assert colours.INK not in {style.colour for key, style in found.items() if key[1] != "mean"}


def test_several_bold_series_keep_their_colours():
    found = series_styles(figure_of(line("AFL", emphasis=True), line("sync", emphasis=True)))
    assert [style.colour for style in found.values()] == list(colours.LINE_COLOURS[:2])


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
