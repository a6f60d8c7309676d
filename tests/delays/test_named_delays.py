"""The ready-made delays are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from asyncfed.core.types import Work
from asyncfed.delays import heavy_tailed, published_laptop, stragglers


def test_the_laptop_has_the_published_spread() -> None:
    model = published_laptop().bind(num_clients=5, seed=0)
    rounds = range(12_000)
    seconds = np.array(
        [[model.timing(client, number, Work(), 100).compute for client in range(5)] for number in rounds]
    )
    spread = seconds.max(axis=1) - seconds.min(axis=1)
    assert spread.mean() == pytest.approx(0.062, rel=0.05)
    assert spread.reshape(-1, 400).max(axis=1).mean() == pytest.approx(0.46, rel=0.2)


def test_the_heavy_tail_is_a_pareto_tail() -> None:
    model = heavy_tailed(shape=1.1, minimum=2.0).bind(num_clients=1, seed=0)
    seconds = np.array([model.timing(0, ticket, Work(), 1).compute for ticket in range(20_000)])
    assert seconds.min() >= 2.0
    assert np.mean(seconds > 20.0) == pytest.approx(0.1**1.1, rel=0.1)


def test_a_fifth_of_ten_clients_straggle() -> None:
    model = stragglers(share=0.2, slowness=10.0).bind(num_clients=10, seed=5)
    assert sorted(model.timing(client, 0, Work(), 1).compute for client in range(10)) == [1.0] * 8 + [10.0] * 2
    assert sum(model.device_of(client) == "straggler" for client in range(10)) == 2
