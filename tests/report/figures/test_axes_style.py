from asyncfed.report.figures import axes_style, colours


def test_lines_differ_in_colour_and_in_dashes():
    styles = [axes_style.line_style(position) for position in range(len(colours.LINE_COLOURS))]
    assert len({style["color"] for style in styles}) == len(styles)
    assert len({str(style["linestyle"]) for style in styles}) == len(styles)


def test_neighbouring_lines_differ_even_beyond_the_palette():
    count = len(colours.LINE_COLOURS)
    assert axes_style.line_style(count - 1) != axes_style.line_style(count)
