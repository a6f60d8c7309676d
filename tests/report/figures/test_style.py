from asyncfed.report.figures import style


def test_lines_differ_in_colour_and_in_dashes():
    looks = [style.line_look(position) for position in range(len(style.COLOURS))]
    assert len({look["color"] for look in looks}) == len(looks)
    assert len({str(look["linestyle"]) for look in looks}) == len(looks)


def test_neighbouring_lines_differ_even_beyond_the_palette():
    count = len(style.COLOURS)
    assert style.line_look(count - 1) != style.line_look(count)
