"""What a target is, from its values: a number to regress on, or classes to tell apart."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from asyncfed.data.raw_table import Column

TargetKind: TypeAlias = Literal["number", "0/1 numbers", "two classes", "several classes"]

CLASS_NUMBERS = ((0.0, 1.0), (-1.0, 1.0), (1.0, 2.0))
"""Pairs of numbers by which people write two classes."""


def kind_of_target(column: Column) -> TargetKind:
    """What this target is, for the choice of a problem.

    Args:
        column: the target; its missing values are not looked at.

    Returns:
        "0/1 numbers" for numbers that are all 0 or 1, -1 or 1, or 1 or 2, both of them occurring; "two classes" for
        true and false, or a text of two levels; "several classes" for a text of any other number of levels; "number"
        for the rest, dates among them.

    >>> [kind_of_target(Column("number", np.array(values))) for values in ([0.0, 1.0, np.nan, 1.0], [0.0, 1.0, 2.0])]
    ['0/1 numbers', 'number']
    """
    if column.is_category:
        occurring = np.bincount(column.values[column.values >= 0], minlength=len(column.levels)) > 0
        return "two classes" if occurring.sum() == 2 else "several classes"
    if column.kind == "boolean":
        return "two classes"
    if column.kind != "number" or column.missing.all():
        return "number"
    low, high = float(np.nanmin(column.values)), float(np.nanmax(column.values))
    between = (column.values > low) & (column.values < high)  # NaN is neither
    return "0/1 numbers" if (low, high) in CLASS_NUMBERS and not between.any() else "number"
