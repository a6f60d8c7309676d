"""Whose voice counts: foretold from the delays, counted in the runs, and what the difference does to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asyncfed.analysis.participation import bias_of_run, predicted_participation
from asyncfed.core.errors import AsyncFedError
from asyncfed.experiment import Experiment
from asyncfed.problems.linear import Linear
from asyncfed.runs.result import Run
from asyncfed.theory.bias import Bias
from asyncfed.theory.queueing import Prediction


@dataclass(frozen=True)
class Voices:
    """`prediction` of shares and staleness before any run; `shares` of merges and `bias` of the first run.

    Only the first run has the experiment's own seed, and with it the clients' devices that were foretold.

    Where one cannot be had it is None, and its note says why.
    """

    prediction: Prediction | None
    prediction_note: str
    shares: np.ndarray | None
    bias: Bias | None
    bias_note: str


def voices(experiment: Experiment, problem: Linear, runs: Sequence[Run]) -> Voices:
    prediction, bias, counted = None, None, None
    try:
        prediction = predicted_participation(experiment, problem.num_examples)
        prediction_note = prediction.limits
    except AsyncFedError as error:
        prediction_note = str(error)
    bias_note = "not run yet"
    if runs:
        merges = runs[0].participation()
        counted = merges / max(1, merges.sum())
        try:
            bias = bias_of_run(runs[0], problem)
            bias_note = bias.why
        except AsyncFedError as error:
            bias_note = str(error)
    return Voices(prediction, prediction_note, counted, bias, bias_note)
