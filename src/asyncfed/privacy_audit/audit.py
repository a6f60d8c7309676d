"""The audit: many runs with and without the canary, a test that tells them apart, and what that says at least."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Record
from asyncfed.privacy.gaussian import epsilon_of_shift, shift_for
from asyncfed.privacy_audit.canary_experiments import CanaryExperiment
from asyncfed.privacy_audit.lower_bounds import epsilon_bound, error_rate_bound, shift_bound
from asyncfed.privacy_audit.released_models import CanaryRuns

Rows = NDArray[np.float64]
FEWEST_RUNS = 40


class LinearTest(NamedTuple):
    """The canary is said to have taken part if `weights` times what was seen is above `threshold`."""

    weights: Rows
    threshold: float

    def statistic(self, seen: Rows) -> Rows:
        """The weighted sum of each row."""
        found: Rows = seen @ self.weights
        return found


class CanaryAudit(Record):
    """What an audit found.

    Args:
        mode: "central", "tree" or "local".
        runs: how many with the canary, and as many without; half of them chose the test, the others tried it.
        confidence: the probability with which the bounds hold.
        delta: of every epsilon here.
        claimed_shift: mu as it is claimed.
        claimed_epsilon: epsilon as it is claimed.
        shift: mu is at least this.
        epsilon: so epsilon is at least this, for Gaussian noise.
        epsilon_any_noise: and at least this whatever the noise is.
        false_alarms: runs without the canary, of those that tried the test, in which it was seen.
        misses: runs with it in which it was not.
        without: the test's statistic in the runs without the canary, less the threshold.
        with_canary: the same in the runs with it.
    """

    mode: str
    runs: int
    confidence: float
    delta: float
    claimed_shift: float
    claimed_epsilon: float
    shift: float
    epsilon: float
    epsilon_any_noise: float
    false_alarms: int
    misses: int
    without: tuple[float, ...]
    with_canary: tuple[float, ...]

    @property
    def refutes(self) -> bool:
        """Whether the claim is false: more is lost at least than is claimed at most."""
        return self.shift > self.claimed_shift


def audit_canaries(
    audited: CanaryExperiment,
    *,
    runs: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
    watch: Callable[[int], None] | None = None,
) -> CanaryAudit:
    """Simulate the experiment many times, with the canary and with its changes zeroed out, and try to tell which.

    Half of the runs choose the test: the weights of the releases, by Fisher's discriminant, and the threshold. It knows
    neither the mode nor the noise. The other half try it, and Clopper-Pearson bounds on both error rates give the
    bound, so that it holds whichever test was chosen.

    Args:
        audited: the experiment and what is claimed of it.
        runs: so many with the canary and so many without, 40 or more; twice as many seeds are used, each once.
        seed: 0 or more; the same seed gives the same audit.
        confidence: above 0 and below 1.
        watch: called with the number of runs done.

    >>> from asyncfed.privacy_audit.canary_experiments import canary_experiment
    >>> found = audit_canaries(canary_experiment("central", epsilon=5.0, participations=1), runs=60)
    >>> found.refutes, 0 < found.shift < found.claimed_shift
    (False, True)
    """
    if runs < FEWEST_RUNS:
        raise ConfigError(f"runs is {runs}; an audit needs at least {FEWEST_RUNS} with the canary and as many without.")
    key, seen = purpose_key(seed, "canaries"), ([], [])  # type: tuple[int, tuple[list[Rows], list[Rows]]]
    both = CanaryRuns(audited, False), CanaryRuns(audited, True)
    for run in range(runs):
        for takes_part in (False, True):
            number = draw_key(key, int(takes_part), run) >> 1  # a seed below 2**63
            seen[takes_part].append(both[takes_part].observe(number))
        if watch is not None:
            watch(2 * (run + 1))
    without, with_canary = np.array(seen[0]), np.array(seen[1])
    half = runs // 2
    test = choose_test(without[:half], with_canary[:half])
    quiet, loud = (test.statistic(rows[half:]) - test.threshold for rows in (without, with_canary))
    false_alarms, misses = int(np.sum(quiet > 0)), int(np.sum(loud <= 0))
    alpha, beta = _error_bounds(false_alarms, misses, len(quiet), confidence)
    claim, shift = audited.claim, shift_bound(alpha, beta)
    delta = claim.delta
    return CanaryAudit(
        claim.mode,
        runs,
        confidence,
        delta,
        shift_for(claim.epsilon, delta),
        claim.epsilon,
        shift,
        epsilon_of_shift(shift, delta) if shift else 0.0,
        epsilon_bound(alpha, beta, delta),
        false_alarms,
        misses,
        tuple(quiet.tolist()),
        tuple(loud.tolist()),
    )


def choose_test(without: Rows, with_canary: Rows) -> LinearTest:
    """Fisher's linear discriminant, S^-1 (mean with - mean without), and the threshold halfway between the means.

    Args:
        without: what was seen, a row a run.
        with_canary: the same number of rows.
    """
    means = without.mean(axis=0), with_canary.mean(axis=0)
    scatter = sum((rows - mean).T @ (rows - mean) for rows, mean in zip((without, with_canary), means, strict=True))
    weights = np.linalg.pinv(scatter / (2 * len(without))) @ (means[1] - means[0])
    return LinearTest(weights, float(0.5 * (means[0] + means[1]) @ weights))


def _error_bounds(false_alarms: int, misses: int, trials: int, confidence: float) -> tuple[float, float]:
    """Both together hold with this confidence."""
    each = 1.0 - (1.0 - confidence) / 2.0
    return error_rate_bound(false_alarms, trials, each), error_rate_bound(misses, trials, each)
