"""The colours and dashes of every figure, on paper and on the page."""

from __future__ import annotations

# Okabe & Ito's palette without its yellow, which is too faint for lines on white.
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINE_DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (6.0, 1.5),
    (1.2, 1.2),
    (6.0, 1.5, 1.2, 1.5),
    (3.0, 1.0),
    (8.0, 3.0),
    (1.0, 3.0),
)
"""Lengths of line and gap in line widths; () is solid."""

INK = "#333333"
"""Text, axes and whatever summarises the rest."""

FAINT = "#8c8c8c"
GRID = "#e4e4e4"
