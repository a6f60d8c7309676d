"""Where evaluations lie on each axis."""

import numpy as np

from asyncfed.analysis.evaluation_axis import axis_positions


def test_evaluations_within_a_round_get_their_share():
    evaluations = {"updates": np.array([0, 5, 10]), "round": np.array([0, 0, 1])}
    rounds = {
        "updates": np.array([10]),
        "energy": np.array([8.0]),
        "bytes_down": np.array([6]),
        "bytes_up": np.array([4]),
    }
    assert axis_positions("energy", evaluations, rounds).tolist() == [0.0, 4.0, 8.0]
    assert axis_positions("bytes", evaluations, rounds).tolist() == [0.0, 5.0, 10.0]
    assert axis_positions("round", evaluations, rounds).tolist() == [0.0, 0.0, 1.0]
