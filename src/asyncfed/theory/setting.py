"""A run in the words of the theory: which rule the server follows, with which step, on which batches, how stale."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Form = Literal["deltas", "models", "latest"]
Batches = Literal["full", "equal", "uneven"]


@dataclass(frozen=True)
class ServerRule:
    """What the server does with what arrives.

    Attributes:
        name: a short name.
        words: what the server does, in a sentence.
        form: the family of path-wise bounds: steps along "deltas" (P), mixing "models" in (M), the mean of all
            "latest" models (M along the path only); None if no bound describes it.
        server_step: η of x ← x + (η/J) Σ_{c∈S} (model_c − base_c) for deltas; for models the weight α of what
            arrives.
        cohort_size: J ≥ 1, updates merged in one version.
        fresh_cohorts: each version merges a uniform J-subset of clients, drawn independently of the past.
        because: why that is so, or why not.
        adds_up: the server of the paper's proofs that adds deltas up.
        sequential: the server of the paper's proofs that passes the model on.
        constant_weight: False where some updates count less than others.
    """

    name: str
    words: str
    form: Form | None
    server_step: float
    cohort_size: int
    fresh_cohorts: bool
    because: str
    adds_up: bool = False
    sequential: bool = False
    constant_weight: bool = True


@dataclass(frozen=True)
class Setting:
    """A run as the theorems see it.

    Attributes:
        rule: the merge rule.
        num_clients: C ≥ 1.
        round_size: J ≥ 1, the updates that make a round.
        learning_rate: λ > 0 of the first local step.
        epochs: local epochs of a ticket, 1 or more.
        fewest_steps: I of the client with fewest local steps.
        most_steps: I of the client with most.
        batches: "full" if every step uses all rows, "equal" if all batches have as many rows, else "uneven".
        batch_size: b ≥ 1, rows of a mini-batch.
        num_versions: merges that are planned or were seen; None if unknown.
        num_rounds: rounds that are planned; None if unknown.
        shape: local rates of one ticket relative to `learning_rate`, for the client with most steps; all 1 if they do
            not decay.
        changing_rate: why rates differ between rounds; empty if they do not.
        decay_over_rounds: whether rates fall as 1/√round.
        declared_staleness: what the strategy enforces, in versions; None: nothing.
        observed_staleness: what the runs showed; None before a run.
        outside: reasons why no bound covers the run at all.
        lossless: no ticket can be lost, and none was lost or dropped, so that cohorts are complete.
    """

    rule: ServerRule
    num_clients: int
    round_size: int
    learning_rate: float
    epochs: int
    fewest_steps: int
    most_steps: int
    batches: Batches
    batch_size: int
    num_versions: int | None
    num_rounds: int | None
    shape: NDArray[np.float64] = field(default_factory=lambda: np.ones(1))
    changing_rate: str = ""
    decay_over_rounds: bool = False
    declared_staleness: int | None = None
    observed_staleness: int | None = None
    outside: tuple[str, ...] = ()
    lossless: bool = True

    @property
    def rates(self) -> NDArray[np.float64]:
        """λ_i of each local step, for the client with most steps."""
        return self.learning_rate * self.shape

    @property
    def effective_step(self) -> float:
        """γ = η Σ λ_i: how far one version moves the server per unit of gradient."""
        return float(self.rule.server_step * self.rates.sum())

    @property
    def staleness(self) -> int | None:
        """τ that a bound may use: what is enforced, else what was seen, else nothing."""
        return self.observed_staleness if self.declared_staleness is None else self.declared_staleness
