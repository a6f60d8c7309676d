"""A distribution and a delay description of one's own: in TOML, resumed, verified, reported and predicted."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.participation import predicted_participation
from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.core.record import Config
from asyncfed.delays import (
    Constant,
    DelayDescription,
    DelayModel,
    Delays,
    Distribution,
    FunctionDelays,
    PredictableDelays,
    Timing,
    expected_durations,
)
from asyncfed.registry import register


@register("distribution")
class Triangular(Config, tag_field="kind", tag="test_triangular"):
    highest: float

    @property
    def is_constant(self):
        return False

    @property
    def is_exponential(self):
        return False

    def draw(self, u):
        return self.highest * u**0.5

    def expected(self):
        return self.highest * 2 / 3


class LinearSlowness:
    def __init__(self, step):
        self.step = step

    def timing(self, client, ticket, work, num_examples):
        return Timing(0.0, 1.0 + self.step * client, 0.0, False)

    def watts(self, client):
        return 10.0

    def finish_compute(self, client, start, seconds):
        return start + seconds

    def lost_after(self, client, ticket, timing):
        return timing.compute


@register("delays")
class Staircase(Config, tag_field="kind", tag="test_staircase"):
    step: float = 1.0

    @property
    def may_lose(self):
        return False

    def bind(self, num_clients, seed):
        return LinearSlowness(self.step)


def text(delays):
    return f"""
num_clients = 4
[data]
kind = "paper_regression"
num_samples = 80
[strategy]
kind = "afl"
concurrency = 2
aggregate = "delta_mean"
[budget]
updates = 40
{delays}
"""


OWN = {
    "distribution": text('[delays.compute]\nkind = "test_triangular"\nhighest = 3.0'),
    "delays": text('[delays]\nkind = "test_staircase"\nstep = 0.5'),
}


def test_they_satisfy_the_protocols():
    assert isinstance(Triangular(highest=1.0), Distribution)
    assert isinstance(Staircase(), DelayDescription)
    assert not isinstance(Staircase(), PredictableDelays)
    assert isinstance(LinearSlowness(1.0), DelayModel)
    assert isinstance(FunctionDelays(lambda client, ticket, work: 1.0), DelayDescription)
    assert isinstance(Delays(), PredictableDelays)


def test_they_are_read_from_toml_and_written_again():
    experiment = af.from_toml(OWN["distribution"])
    assert experiment.delays == Delays(compute=Triangular(highest=3.0))
    other = af.from_toml(OWN["delays"])
    assert other.delays == Staircase(step=0.5)
    for each in (experiment, other):
        assert af.from_toml(af.to_toml(each)) == each


@pytest.mark.slow
@pytest.mark.parametrize("kind", OWN)
def test_a_run_with_them_is_resumed_verified_and_reported(cli, tmp_path, kind):
    toml, out = tmp_path / "own.toml", tmp_path / "run.sqlite"
    toml.write_text(OWN[kind])
    assert cli("run", toml, "--out", out).code == 0
    run = af.load(out)
    assert run.experiment == af.from_toml(OWN[kind])
    assert af.resume(out).sha256 == run.sha256
    assert cli("verify", out).code == 0
    page = tmp_path / "page.html"
    assert cli("report", out, "--out", page).code == 0
    assert f"test_{'triangular' if kind == 'distribution' else 'staircase'}" in page.read_text()


def test_a_distribution_in_delays_is_drawn_by_ticket_and_by_client():
    model = Delays(compute=Triangular(highest=3.0), slowness=Triangular(highest=2.0)).bind(5, seed=1)
    seconds = [model.timing(client, ticket, af.Work(), 1).compute for client in range(5) for ticket in range(3)]
    assert len(set(seconds)) == 15
    assert max(seconds) < 6.0


def test_mean_durations_come_from_the_distribution_or_else_from_draws():
    exact = expected_durations(Delays(compute=Triangular(highest=3.0)), 3, seed=0)
    np.testing.assert_array_equal(exact.compute, [2.0, 2.0, 2.0])
    drawn = expected_durations(Staircase(step=0.5), 3, seed=0)
    np.testing.assert_allclose(drawn.compute, [1.0, 1.5, 2.0])


def test_participation_is_predicted_and_the_prediction_says_where_its_means_come_from():
    prediction = predicted_participation(af.from_toml(OWN["delays"]))
    assert prediction.share[0] > prediction.share[3]
    assert "estimated from draws" in prediction.limits


def test_a_negative_draw_of_ones_own_is_refused_by_name():
    class Negative(Triangular, tag_field="kind", tag="test_negative"):
        def draw(self, u):
            return -1.0

    model = af.Experiment(delays=Delays(compute=Negative(highest=1.0)))
    with pytest.raises(DelayError, match=r"a compute of -1\.0 s"):
        af.run(model)


def test_a_misspelt_kind_is_explained():
    with pytest.raises(ConfigError, match=r'delays.compute.kind is "test_triangel".*test_triangular'):
        af.from_toml(OWN["distribution"].replace("test_triangular", "test_triangel"))


def test_constant_parts_are_known_by_what_they_are_and_not_by_their_class():
    class Always(Config, tag_field="kind", tag="test_always"):
        value: float = 2.0
        is_constant = True
        is_exponential = False

        def draw(self, u):
            raise AssertionError("a constant needs no draw")

        def expected(self):
            return self.value

    own, shipped = (Delays(compute=part).bind(3, 0) for part in (Always(), Constant(value=2.0)))
    assert [own.timing(c, 5, af.Work(), 1) for c in range(3)] == [shipped.timing(c, 5, af.Work(), 1) for c in range(3)]
