"""Where each evaluation of a run lies: its round, virtual seconds, bytes or joules since the start."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from asyncfed.analysis.protocols import Axis, check_axis


def axis_positions(axis: Axis, evaluations: Mapping[str, np.ndarray], rounds: Mapping[str, np.ndarray]) -> np.ndarray:
    """The evaluations' places on the axis.

    Bytes (down and up) and energy are accounted for at the end of each round; an evaluation within a round gets its
    share by merged updates.
    """
    check_axis(axis)
    if axis in ("round", "elapsed"):
        return evaluations[axis].astype(np.float64)
    spent = rounds["energy"] if axis == "energy" else rounds["bytes_down"] + rounds["bytes_up"]
    return np.asarray(np.interp(evaluations["updates"], [0, *rounds["updates"]], [0.0, *spent]))
