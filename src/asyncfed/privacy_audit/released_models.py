"""What an adversary sees of runs: the canary's direction in every model that was released."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import replace
from asyncfed.core.types import Merge
from asyncfed.engine.execution import Execution
from asyncfed.privacy_audit.canary_experiments import CanaryExperiment
from asyncfed.privacy_audit.canary_problem import CanaryProblem
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal

LENGTH_IN_CLIPS = 3.0
"""Of the canary's change before it is clipped."""


class CanaryRuns:
    """Simulates an experiment with its canary, or with the canary zeroed out, once for each seed.

    Args:
        audited: what is run.
        takes_part: whether the canary takes part, or its changes are zero.
    """

    def __init__(self, audited: CanaryExperiment, takes_part: bool) -> None:
        self._audited = audited
        self._problem = CanaryProblem(takes_part, LENGTH_IN_CLIPS * audited.claim.clip, audited.num_clients)
        self._plan = audited.experiment.plan(1)  # composed once: that takes longer than a run
        self._delays = audited.experiment.bind_delays(audited.num_clients)

    def observe(self, seed: int) -> NDArray[np.float64]:
        """How far each released model is from the one before, along the canary's direction.

        Args:
            seed: of the run, and so of its noise.

        Returns:
            As many numbers as there are releases.
        """
        models: list[float] = []
        merged: Counter[int] = Counter()

        def note(execution: Execution, merge: Merge) -> None:
            models.append(float(execution.vectors.params[0]))
            merged.update(execution.dispatches[ticket].client for ticket in merge.tickets)

        plan = replace(self._plan, seed=seed)
        simulation = Simulation(self._problem, self._delays, plan, Journal.create(None, {}), observer=note)
        while not simulation.finished:
            simulation.advance(1000)
        models.append(float(simulation.state.params[0]))
        due = self._audited.claim.participations
        if len(models) != due + 1 or set(merged.values()) != {due}:
            raise ProtocolError(
                f"the canary's run released {len(models) - 1} models, with {dict(merged)} updates by client; "
                f"{due} with {due} of each were due. This is a defect of AsyncFed."
            )
        return np.diff(np.array(models))
