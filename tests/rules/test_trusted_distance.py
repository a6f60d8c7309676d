"""TrustedDistance: the numbers, when the trusted change is computed anew, and what is left to the wrapped rule."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Merge, Work
from asyncfed.rules import Arrival, Mean, Momentum, Optimised, RuleRun, TrustedDistance

WORK = Work(learning_rate=0.5)


class Probe:
    """Trains by moving 3 and 4 along the first two coordinates, times the number of calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, params, client, work, version):
        self.calls.append((client, work, version))
        return params + len(self.calls) * np.array([3.0, 4.0, 0.0])


def arrival(change, start=(7.0, 7.0, 7.0)):
    start = np.array(start)
    return Arrival(0, 2, 0.0, 0, WORK, 1, 1, start, start + np.array(change))


def test_the_distance_and_the_length_of_the_trusted_change():
    run, probe, params = RuleRun(TrustedDistance(trusted_client=4), np.zeros(3), 5), Probe(), np.array([1.0, 2.0, 3.0])
    assert run.measure(params, arrival([3.0, 4.0, 0.0]), probe) == {"distance": 0.0, "trusted_norm": 5.0}
    assert run.measure(params, arrival([-3.0, -4.0, 0.0]), probe) == {"distance": 10.0, "trusted_norm": 5.0}
    assert run.measure(params, arrival([3.0, 4.0, 12.0]), probe) == {"distance": 12.0, "trusted_norm": 5.0}
    assert run.measure(params, arrival([0.0, 0.0, 0.0]), probe) == {"distance": 5.0, "trusted_norm": 5.0}
    assert probe.calls == [(4, WORK, 0)]  # once for a version, however many arrive


@pytest.mark.parametrize(("refresh", "versions"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (4, [0, 4]), (9, [0])])
def test_it_is_computed_anew_every_so_many_versions(refresh, versions):
    run, probe, params = RuleRun(TrustedDistance(refresh=refresh), np.zeros(3), 5), Probe(), np.zeros(3)
    for _ in range(6):
        run.measure(params, arrival([1.0, 0.0, 0.0]), probe)
        params, _ = run.step(params, [arrival([1.0, 0.0, 0.0])], Merge((0,), (1.0,)), 0)
    assert [version for _, _, version in probe.calls] == versions


def test_a_restored_memory_goes_on():
    rule, probe, params = TrustedDistance(refresh=3), Probe(), np.zeros(3)
    run = RuleRun(rule, params, 5)
    run.measure(params, arrival([1.0, 0.0, 0.0]), probe)
    run.step(params, [arrival([1.0, 0.0, 0.0])], Merge((0,), (1.0,)), 0)
    other = RuleRun(rule, params, 5)
    other.load({name: array.copy() for name, array in run.dump().items()})
    assert other.measure(params, arrival([3.0, 4.0, 0.0]), probe) == {"distance": 0.0, "trusted_norm": 5.0}
    assert len(probe.calls) == 1


@pytest.mark.parametrize("wrapped", [Mean(), Optimised(optimiser=Momentum(b=0.5))], ids=["mean", "momentum"])
def test_merging_is_left_to_the_wrapped_rule(wrapped):
    one, other = RuleRun(TrustedDistance(rule=wrapped), np.zeros(3), 5), RuleRun(wrapped, np.zeros(3), 5)
    x = y = np.zeros(3)
    for step in range(4):
        merged = [arrival([1.0, step, 0.0])._replace(weight=0.5)]
        x, _ = one.step(x, merged, Merge((0,), (0.5,)), 0)
        y, _ = other.step(y, merged, Merge((0,), (0.5,)), 0)
        assert x.tobytes() == y.tobytes()


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match=r"rule\.refresh is 0"):
        TrustedDistance(refresh=0)
    with pytest.raises(ConfigError, match=r"rule\.trusted_client is -1; clients are numbered from 0"):
        TrustedDistance(trusted_client=-1)
