"""The figure of delays shows what was sampled."""

from __future__ import annotations

import numpy as np

from asyncfed.analysis.delay_sample import sample_delays
from asyncfed.delays import ClusterVariation, Constant, Delays, hospital
from asyncfed.report.figures.delay_figure import delay_figure


def test_it_has_the_fastest_the_median_the_slowest_and_the_one_that_changes() -> None:
    made = ClusterVariation(
        spread=0.3,
        noise=Constant(value=0.02),
        split_share=0.0,
        straggler_share=0.1,
        straggler_slowness=Constant(value=2.0),
        straggler_turn=Constant(value=15.0),
    )
    sample = sample_delays(Delays(variation=made), num_clients=10, tickets=30)
    over_time, by_client, distribution, memory = delay_figure(sample, "mine", "what they are").panels
    labels = [series.label for series in over_time.series]
    order = np.argsort(sample.client_medians)
    straggler = int(np.argmax(sample.active[-1] / sample.active[0]))
    assert {f"client {order[0]}", f"client {order[-1]}", f"client {straggler}"} <= set(labels)
    assert all(series.kind == "line" for series in over_time.series)
    assert list(by_client.series[0].y) == sorted(sample.client_medians)
    assert by_client.series[0].low[0] <= by_client.series[0].y[0] <= by_client.series[0].high[0]
    assert distribution.series[0].x[0] == sample.seconds.min()
    assert distribution.series[0].x[-1] == sample.seconds.max()
    assert memory.series[0].y[0] == 1.0
    assert distribution.note == "No ticket is lost."


def test_absences_are_shown_by_the_hour() -> None:
    sample = sample_delays(hospital(), num_clients=3, tickets=10)
    figure = delay_figure(sample, "hospital", "seven hospitals")
    assert [series.label for series in figure.panels[2].series] == ["with absences", "without absences"]
    presence = figure.panels[3].series[0]
    assert len(presence.y) == 24
    assert 80 < np.mean([value for value in presence.y if value is not None]) < 100


def test_equal_clients_have_a_figure_too() -> None:
    figure = delay_figure(sample_delays(Delays(), num_clients=1, tickets=2), "none", "every ticket takes exactly 1 s")
    assert [series.label for series in figure.panels[0].series] == ["client 0"]
    assert len(figure.panels) == 3  # what never varies has no autocorrelation
