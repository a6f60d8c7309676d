"""The audit by canaries: below the claim when the noise is as claimed, above it when half of it is missing."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.privacy.gaussian import epsilon_of_shift
from asyncfed.privacy_audit.audit import audit_canaries, choose_test
from asyncfed.privacy_audit.canary_experiments import CLIENTS, MODES, canary_experiment
from asyncfed.privacy_audit.canary_problem import CANARY, CanaryProblem
from asyncfed.privacy_audit.released_models import CanaryRuns
from asyncfed.problems.protocol import Jobs
from asyncfed.report.figures.canary_figure import canary_figure

EPSILON = 10.0
"""At delta 1e-5 mu is then 2.0."""


def audit(mode, noise_fraction, runs):
    audited = canary_experiment(mode, EPSILON, 3, noise_fraction=noise_fraction)
    return audit_canaries(audited, runs=runs, confidence=0.99)


def check_both(mode, runs):
    honest, halved = audit(mode, 1.0, runs), audit(mode, 0.5, runs)
    assert honest.claimed_shift == halved.claimed_shift == pytest.approx(2.0, abs=0.01)
    assert 0.0 < honest.shift < honest.claimed_shift < halved.shift
    assert honest.epsilon < honest.claimed_epsilon < halved.epsilon
    assert not honest.refutes
    assert halved.refutes


def test_the_bound_is_below_the_claim_and_above_it_with_half_the_noise():
    check_both("central", 100)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_same_with_more_runs_in_every_mode(mode):
    check_both(mode, 300)


@pytest.mark.parametrize("mode", MODES)
def test_without_noise_to_speak_of_the_canary_is_seen_as_it_was_clipped(mode):
    """Its change of length 3 counts 1, as often as it takes part, and other clients' changes cancel out."""
    quiet = canary_experiment(mode, EPSILON, 3, noise_fraction=1e-9)
    difference = CanaryRuns(quiet, True).observe(5) - CanaryRuns(quiet, False).observe(6)
    assert len(difference) == quiet.claim.participations
    if mode == "local":
        assert difference.sum() > 0.5  # FedAsync mixes models
    else:
        assert difference == pytest.approx(1.0 / CLIENTS, abs=1e-6)


def test_noise_differs_between_runs_and_an_audit_does_not():
    central = canary_experiment("central", EPSILON, 2)
    there = CanaryRuns(central, True)
    assert np.all(there.observe(1) != there.observe(2))
    one, again, other = (audit_canaries(central, runs=40, seed=seed) for seed in (3, 3, 4))
    assert one == again
    assert one.without != other.without


def test_the_test_that_is_chosen_weighs_releases_as_their_noise_demands():
    chance = np.random.default_rng(0)
    noise = chance.normal(size=(2, 4000, 2)) * [1.0, 10.0]
    test = choose_test(noise[0], noise[1] + [1.0, 1.0])
    assert test.weights[1] / test.weights[0] == pytest.approx(0.01, abs=0.01)
    assert test.threshold == pytest.approx(0.5, abs=0.05)


def test_the_canary_changes_the_model_along_the_first_parameter_or_not_at_all():
    there, zeroed = CanaryProblem(True, 3.0, 3), CanaryProblem(False, 3.0, 3)
    assert there.change(CANARY).tolist() == [3.0, 0.0, 0.0]
    assert not zeroed.change(CANARY).any()
    assert there.change(1).tolist() == zeroed.change(1).tolist() != there.change(2).tolist()
    starts, work = np.arange(6.0).reshape(2, 3), Work()
    together = there.local_train_many(Jobs(starts, [0, 2], [work, work], [1, 2]))
    assert together.tolist() == [there.local_train(starts[i], c, work, 0).tolist() for i, c in ((0, 0), (1, 2))]
    assert there.fingerprint() != zeroed.fingerprint()


def test_the_figure_has_both_distributions_and_the_claimed_curve():
    figure = canary_figure(audit_canaries(canary_experiment("central", epsilon_of_shift(1.0, 1e-5), 1), runs=40))
    distributions, trade_off = figure.panels
    widths = [np.diff(series.x).mean() * sum(series.y) for series in distributions.series]
    assert widths == pytest.approx([1.0, 1.0])
    claimed = dict(zip(trade_off.series[0].x, trade_off.series[0].y, strict=True))
    nearest = min(claimed, key=lambda alpha: abs(alpha - 0.5))
    assert claimed[nearest] == pytest.approx(0.1587, abs=0.01)  # Phi(-mu) at alpha 1/2, and mu is 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"mode": "centre", "epsilon": 1.0, "participations": 1}, "central"),
        ({"mode": "central", "epsilon": 1.0, "participations": 1, "noise_fraction": 0.0}, "without noise"),
        ({"mode": "central", "epsilon": 1.0, "participations": 0}, "at least once"),
    ],
)
def test_what_cannot_be_audited_is_refused(how, says):
    with pytest.raises(ConfigError, match=says):
        canary_experiment(**how)


def test_too_few_runs_are_refused():
    with pytest.raises(ConfigError, match="40"):
        audit_canaries(canary_experiment("central", EPSILON, 1), runs=10)
