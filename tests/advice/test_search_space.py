"""What is searched of a strategy: only settings that it has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.advice.advisor import STRATEGIES
from asyncfed.advice.search_space import search_space
from asyncfed.presets import strategy_like

OTHER = af.strategies.FedAsync(concurrency=8, work=af.Work(learning_rate=0.01))
ROWS = np.full(16, 100)


def space_of(name, rows=ROWS, other=OTHER):
    return search_space(name, strategy_like(name, other, "same"), rows)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("fedavg", ["rate", "cohort_size", "local work", "weighting"]),
        ("fedasync", ["rate", "concurrency", "local work", "mixing"]),
        ("fedbuff", ["rate", "concurrency", "local work", "buffer_size"]),
        ("afl", ["rate", "concurrency", "local work", "max_staleness"]),
        ("ringmaster", ["rate", "concurrency", "local work", "staleness_threshold"]),
        ("fedcompass", ["rate", "max_steps"]),
        ("scaffold_async", ["rate", "concurrency", "local work", "mixing"]),
    ],
)
def test_only_settings_that_the_strategy_has_are_searched(name, names):
    assert [choice.name for choice in space_of(name).choices] == names


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=15)
@given(data=st.data(), clients=st.integers(1, 40))
def test_every_point_of_a_space_is_a_strategy_that_fits_the_clients(name, data, clients):
    space = search_space(name, strategy_like(name, af.strategies.FedAsync(concurrency=1), "same"), np.full(clients, 50))
    levels = tuple(data.draw(st.integers(0, len(choice.levels) - 1)) for choice in space.choices)
    space.at(levels).check(clients)
    assert space.describe(levels).keys() == {choice.name for choice in space.choices}
    assert all(sum(a != b for a, b in zip(levels, other, strict=True)) == 1 for other in space.neighbours(levels))


def test_the_default_is_the_strategy_as_it_was():
    space = space_of("fedasync")
    assert space.at(space.default) == space.strategy


def test_parts_of_an_epoch_are_searched_where_an_epoch_has_many_steps():
    work = next(choice for choice in space_of("fedavg", np.full(4, 3200)).choices if choice.name == "local work")
    assert work.levels == ("6 steps", "25 steps", "50 steps", "1 epoch", "2 epochs", "4 epochs")
    work = next(choice for choice in space_of("fedavg").choices if choice.name == "local work")
    assert work.levels == ("1 epoch", "2 epochs", "4 epochs")


def test_a_buffer_follows_the_concurrency():
    space = space_of("fedbuff")
    strategy = space.at((4, 3, 0, 2))
    assert (strategy.concurrency, strategy.buffer_size) == (16, 8)


def test_equal_levels_count_once():
    alone = search_space("fedavg", strategy_like("fedavg", OTHER, "same"), np.array([40]))
    assert "cohort_size" not in [choice.name for choice in alone.choices]
