"""Mean durations: the formula against the average of what the bound model really draws."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError, DelayError
from asyncfed.core.types import Work
from asyncfed.delays import (
    Availability,
    Constant,
    Delays,
    Device,
    Exponential,
    FunctionDelays,
    LogNormal,
    Pareto,
    ShiftedExponential,
    Uniform,
)
from asyncfed.delays.mean_durations import estimate_durations, expected_durations

EXAMPLES = [10, 20, 30, 40, 50]
DESCRIPTIONS = {
    "exponential": Delays(compute=Exponential(mean=2.0)),
    "devices": Delays(
        compute=Uniform(low=1.0, high=3.0), devices=(Device(name="phone", share=0.4, slowness=5.0),), dropout=0.3
    ),
    "slowness": Delays(compute=Exponential(mean=1.0), slowness=LogNormal(median=1.0, sigma=1.0)),
    "per_sample": Delays(compute=ShiftedExponential(shift=0.5, mean=0.5), per_sample=0.01),
    "transfers": Delays(download=Exponential(mean=0.3), upload=Uniform(low=0.0, high=1.0)),
}


@pytest.mark.parametrize("delays", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_the_formula_is_the_average_of_the_draws(delays: Delays) -> None:
    work = Work(epochs=3)
    means = expected_durations(delays, 5, 7, work, EXAMPLES)
    drawn = estimate_durations(delays.bind(5, 7), 5, work, EXAMPLES, tickets=4000)
    for part in ("download", "compute", "upload", "total"):
        np.testing.assert_allclose(getattr(drawn, part), getattr(means, part), rtol=0.08, err_msg=part)


@pytest.mark.parametrize("name", ["exponential", "per_sample"])
def test_the_formula_counts_steps_as_the_model_does(name: str) -> None:
    work, delays = Work(epochs=3, batch_size=8, steps=5), DESCRIPTIONS[name]
    means = expected_durations(delays, 5, 7, work, EXAMPLES)
    drawn = estimate_durations(delays.bind(5, 7), 5, work, EXAMPLES, tickets=4000)
    np.testing.assert_allclose(drawn.compute, means.compute, rtol=0.08)
    constant = expected_durations(Delays(), 5, 7, work, EXAMPLES)
    np.testing.assert_allclose(constant.compute, [5 / 2, 5 / 3, 5 / 4, 5 / 5, 5 / 7])


def test_each_client_has_its_own_device_and_slowness() -> None:
    delays = Delays(devices=(Device(name="phone", share=0.4, slowness=5.0),))
    assert sorted(expected_durations(delays, 5, 0).compute.tolist()) == [1.0, 1.0, 1.0, 5.0, 5.0]
    spread = expected_durations(DESCRIPTIONS["slowness"], 5, 0).compute
    assert len(set(spread.tolist())) == 5
    assert not np.array_equal(spread, expected_durations(DESCRIPTIONS["slowness"], 5, 1).compute)


def test_a_mean_that_does_not_exist_is_infinite() -> None:
    heavy = Delays(compute=Pareto(minimum=1.0, shape=1.0), upload=Constant(value=2.0))
    means = expected_durations(heavy, 3, 0)
    assert means.compute.tolist() == means.total.tolist() == [inf] * 3
    assert means.upload.tolist() == [2.0] * 3
    nothing = Delays(compute=Pareto(minimum=1.0, shape=0.5), slowness=Constant(value=0.0))
    assert expected_durations(nothing, 3, 0).compute.tolist() == [0.0] * 3


def test_a_trace_counts_with_the_mean_of_the_clients_rows(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("client,seconds\n0,1\n0,3\n1,8\n")
    assert expected_durations(Delays(trace=str(path)), 3, 0).compute.tolist() == [2.0, 8.0, 4.0]


def test_absences_stretch_computing() -> None:
    nights = Availability(period=10.0, on_fraction=0.25)
    delays = Delays(compute=Constant(value=2.0), upload=Constant(value=1.0), availability=nights)
    means = expected_durations(delays, 1, 0)
    assert (means.compute[0], means.upload[0]) == (8.0, 1.0)
    moment, model = 0.0, delays.bind(1, 0)
    for _ in range(100):
        moment = model.finish_compute(0, moment, 2.0)
    assert moment / 100 == pytest.approx(8.0, rel=0.02)


def test_a_function_is_measured() -> None:
    model = FunctionDelays(lambda client, ticket, work: (client + 1) * (1.0 + ticket % 2)).bind(2, 0)
    assert estimate_durations(model, 2, tickets=10).compute.tolist() == [1.5, 3.0]


def test_what_cannot_be_answered_is_refused() -> None:
    with pytest.raises(ConfigError, match="pass num_examples"):
        expected_durations(Delays(per_sample=1.0), 3, 0)
    with pytest.raises(ConfigError, match=r"work\.steps is set, .* pass num_examples"):
        expected_durations(Delays(), 3, 0, Work(steps=2))
    with pytest.raises(ConfigError, match=r"shape \(2,\), but there are 3 clients"):
        expected_durations(Delays(per_sample=1.0), 3, 0, num_examples=[1, 2])
    with pytest.raises(ConfigError, match="tickets is 0"):
        estimate_durations(Delays().bind(1, 0), 1, tickets=0)
    with pytest.raises(DelayError, match=r"compute of -1\.0 s"):
        estimate_durations(FunctionDelays(lambda client, ticket, work: -1.0).bind(1, 0), 1)
