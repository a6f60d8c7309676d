"""Power-of-choice: the largest losses among candidates by data share; the unknown first."""

from collections import Counter

import pytest
from scipy.stats import chisquare
from tests.strategies.guided import told, update_of, view_of

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.strategies import FedAsync, FedAvg
from asyncfed.strategies.power_of_choice import PowerOfChoice
from asyncfed.testing import check_strategy


def losses(sampler, *values):
    return told(sampler, *[update_of(client, start_loss=value) for client, value in enumerate(values)])


def test_all_are_candidates_so_the_largest_losses_win():
    sampler = PowerOfChoice(candidates=4)
    assert sampler.draw(losses(sampler, 1.0, 4.0, 3.0, 2.0), view_of(range(4)), 2)[0] == [1, 2]


def test_the_unknown_come_first_and_an_older_loss_is_forgotten():
    sampler = PowerOfChoice(candidates=4)
    memory = told(sampler, *[update_of(0, start_loss=value) for value in (9.0, 1.0)], update_of(2, start_loss=5.0))
    chosen, _ = sampler.draw(memory, view_of(range(4)), 4)
    assert set(chosen[:2]) == {1, 3}
    assert chosen[2:] == [2, 0]


def test_with_as_many_candidates_as_tickets_it_is_sampling_by_data_share():
    sampler, examples = PowerOfChoice(candidates=1), [1, 2, 5]
    memory = losses(sampler, 9.0, 1.0, 1.0)
    draws = [sampler.draw(memory, view_of(range(3), seed=seed, examples=examples), 1)[0][0] for seed in range(800)]
    counts = Counter(draws)
    assert chisquare([counts[c] for c in range(3)], [100, 200, 500]).pvalue > 0.01


def test_clients_without_samples_can_be_drawn_where_nobody_has_any():
    assert len(PowerOfChoice().draw(PowerOfChoice().start(), view_of(range(3), examples=[0, 0, 0]), 2)[0]) == 2


def test_what_is_refused():
    with pytest.raises(ConfigError, match=r"sampler\.candidates is 0"):
        PowerOfChoice(candidates=0)
    with pytest.raises(ConfigError, match="the sampler power_of_choice draws clients by their start_loss"):
        FedAvg(cohort_size=2, sampler=PowerOfChoice()).check(5)


def test_it_goes_with_merging_on_arrival():
    check_strategy(FedAsync(concurrency=3, sampler=PowerOfChoice(candidates=2), work=Work(start_loss=True)))
