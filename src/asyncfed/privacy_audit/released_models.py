"""What an adversary sees of one run: the canary's direction in every model that was released."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge
from asyncfed.engine.execution import Execution
from asyncfed.privacy_audit.canary_experiments import CLIENTS, CLIP, CanaryExperiment
from asyncfed.privacy_audit.canary_problem import CanaryProblem
from asyncfed.runs.simulate import simulate

LENGTH = 3.0 * CLIP
"""Of the canary's change before it is clipped."""


def observe_releases(audited: CanaryExperiment, takes_part: bool, seed: int) -> NDArray[np.float64]:
    """Simulate the experiment once: how far each released model is from the one before, along the canary's direction.

    Args:
        audited: what is run.
        takes_part: whether the canary takes part, or its changes are zero.
        seed: of the run, and so of its noise.

    Returns:
        As many numbers as there are releases.
    """
    seen: list[float] = []

    def observe(execution: Execution, merge: Merge) -> None:
        seen.append(float(execution.vectors.params[0]))

    problem = CanaryProblem(takes_part, LENGTH, CLIENTS)
    run = simulate(replace(audited.experiment, seed=seed), problem=problem, threads=1, observer=observe)
    models = [*seen, float(run.params[0])]
    if len(models) != audited.releases + 1 or set(run.participation()) != {audited.participations}:
        raise ProtocolError(
            f"the canary's run released {len(models) - 1} models and merged {run.participation()} updates of its "
            f"clients; {audited.releases} models were due. This is a defect of AsyncFed."
        )
    return np.diff(np.array(models))
