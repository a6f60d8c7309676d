"""Colours that readers can distinguish."""

from asyncfed.report.figures import colours


def luminance(colour):
    """Relative luminance by the sRGB standard, 0 for black and 1 for white."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_and_dashes_differ_and_are_as_many():
    assert len(set(colours.LINE_COLOURS)) == len(set(colours.LINE_DASHES)) == len(colours.LINE_COLOURS)


def test_text_can_be_read_and_lines_be_seen_on_white():
    def contrast(colour):
        return 1.05 / (luminance(colour) + 0.05)

    assert contrast(colours.INK) > 7
    assert min(map(contrast, colours.LINE_COLOURS)) > 2
