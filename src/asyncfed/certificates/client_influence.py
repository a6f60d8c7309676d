"""How much each client counts: predicted from the delays, counted in the runs, and what that does to the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from asyncfed.analysis.participation import bias_of_run, predicted_participation
from asyncfed.certificates.certifiable import Certifiable
from asyncfed.core.errors import AsyncFedError
from asyncfed.experiment import Experiment
from asyncfed.runs.result import RecordedRun
from asyncfed.theory.bias import Bias
from asyncfed.theory.queueing import Prediction


@dataclass(frozen=True)
class ClientInfluence:
    """How much each client counts, before and after a run. What has no answer is None, and its note says why.

    Attributes:
        prediction: shares of the merges and staleness to expect, before any run.
        prediction_note: what the prediction leaves out, or why there is none.
        shares: (C,) shares of the merges in the first run, the only one with the experiment's own seed and with it the
            clients' devices of the prediction.
        bias: how far unequal influence moved the first run's optimum.
        bias_note: what the bias means for this rule, or why there is none.
    """

    prediction: Prediction | None
    prediction_note: str
    shares: np.ndarray | None
    bias: Bias | None
    bias_note: str


def client_influence(experiment: Experiment, problem: Certifiable, runs: Sequence[RecordedRun]) -> ClientInfluence:
    """The influence of every client of an experiment, and of the first of its runs."""
    prediction, prediction_note = _prediction(experiment, problem)
    bias, counted, bias_note = None, None, "not run yet"
    if runs:
        merges = runs[0].participation()
        counted = merges / max(1, merges.sum())
        try:
            bias = bias_of_run(runs[0])
            bias_note = bias.why
        except AsyncFedError as error:
            bias_note = str(error)
    return ClientInfluence(prediction, prediction_note, counted, bias, bias_note)


def _prediction(experiment: Experiment, problem: Certifiable) -> tuple[Prediction | None, str]:
    try:
        prediction = predicted_participation(experiment, problem.num_examples, problem)
    except AsyncFedError as error:
        return None, str(error)
    return prediction, prediction.limits
