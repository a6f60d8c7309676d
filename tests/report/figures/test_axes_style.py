from asyncfed.report.figures import axes_style, colours


def test_lines_differ_in_colour_and_in_dashes():
    looks = [axes_style.line_style(position) for position in range(len(colours.LINE_COLOURS))]
    assert len({look["color"] for look in looks}) == len(looks)
    assert len({str(look["linestyle"]) for look in looks}) == len(looks)


def test_neighbouring_lines_differ_even_beyond_the_palette():
    count = len(colours.LINE_COLOURS)
    assert axes_style.line_style(count - 1) != axes_style.line_style(count)
