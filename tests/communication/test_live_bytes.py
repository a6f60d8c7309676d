"""A live run on this machine: the bytes that the server received, and the seconds they would take on 1 Mbit/s."""

import pytest

import asyncfed as af
from asyncfed.communication.cells import BYTES_PER_MEGABIT, Cell, cell_experiment
from asyncfed.communication.entry import study_problem

pytestmark = pytest.mark.slow


def _bytes_to_target(codec, rate, folder):
    """Bytes that the server had received when the last round ended, by the journal; the run stops at the target."""
    _, target = study_problem("regression", 1)
    experiment = cell_experiment(Cell("regression", "1_mbit", "fedbuff", codec), rate, 1, target.level)
    run = af.run_live(experiment, out=folder / f"{codec}.sqlite")
    assert target.left(run.evaluations["objective"][-1]) <= target.remaining
    return int(run.rounds["bytes_up"][-1])


def test_top_k_with_error_feedback_receives_20_times_fewer_bytes_live(tmp_path):
    whole = _bytes_to_target("none", 0.0125, tmp_path)
    less = _bytes_to_target("top_k_ef", 0.006, tmp_path)
    assert whole >= 20 * less
    seconds = [received / BYTES_PER_MEGABIT for received in (whole, less)]
    assert seconds[0] > 10 > 1 > seconds[1]
