"""The figure of a recorded run beside other strategies."""

from asyncfed.report.figures.what_if_figure import draw_what_if


def test_each_run_has_a_line_on_the_clock_and_per_update(make_run):
    figure = draw_what_if({"recorded": make_run(), "sync": make_run((9.0, 5.0, 2.0))})
    clock, updates = figure.axes
    assert [line.get_label() for line in clock.lines] == ["recorded", "sync"]
    assert clock.lines[1].get_xdata().tolist() == [0.0, 2.0, 4.0]
    assert updates.lines[1].get_xdata().tolist() == [0, 5, 10]
    assert updates.lines[1].get_ydata().tolist() == [9.0, 5.0, 2.0]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["recorded", "sync"]
