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

    `name` is short, `words` say it all. `form` is the family a path-wise bound covers: steps along `deltas` (P), mixing
    `models` in (M), or the mean of all `latest` models (M along the path only); None if no bound here describes it.
    `server_step` is η and `cohort_size` J of `x ← x + (η/J) Σ_{c∈S} (model_c − base_c)` for deltas; for models,
    `server_step` is the weight α of what arrives. `fresh_cohorts`: each version merges a uniform J-subset of clients,
    drawn independently of the past; `because` says why, or why not. `adds_up` and `sequential` mark the two servers of
    the paper's proofs; `constant_weight` is False where some updates count less than others.
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
    """A run as the bounds see it.

    `shape` are the local rates of one ticket relative to `learning_rate` (all 1 if they do not decay within it), for
    the client with most steps; `fewest_steps` and `most_steps` are I over the clients. `changing_rate` says why rates
    differ between rounds, or is empty. `declared_staleness` is what the strategy enforces (None: nothing),
    `observed_staleness` what a run showed. `outside` lists reasons why no bound covers the run at all.
    `lossless`: no ticket can be lost, and none was lost or dropped, so cohorts are complete.
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
