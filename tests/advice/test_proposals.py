"""What is tried next follows from what was tried, and from nothing else."""

import sys

import numpy as np
import pytest

import asyncfed as af
from asyncfed.advice.proposals import Tried, load_optuna, propose
from asyncfed.advice.search_space import Space, search_space

SPACE = search_space("fedasync", af.strategies.FedAsync(concurrency=8), np.full(16, 100))


def test_the_first_proposal_is_the_strategy_as_it_is():
    first = propose(SPACE, [], 9, seed=1)
    assert first[0] == SPACE.default
    assert len(set(first)) == 9


def test_equal_results_give_equal_proposals_and_none_is_repeated():
    tried = [Tried(levels, 2, float(sum(levels)), True) for levels in propose(SPACE, [], 9, seed=1)]
    tried[3] = Tried(tried[3].levels, 0, 5.0, False)
    one, two = (propose(SPACE, tried, 9, seed=1) for _ in range(2))
    assert one == two
    assert not {each.levels for each in tried} & set(one)
    assert one != propose(SPACE, tried, 9, seed=2)


def test_a_space_that_is_used_up_gives_fewer():
    small = Space("small", SPACE.strategy, SPACE.choices[1:2])
    assert len(propose(small, [], 9, seed=0)) == len(SPACE.choices[1].levels)
    assert propose(Space("none", SPACE.strategy, ()), [], 9, seed=0) == [()]


def test_without_optuna_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(af.errors.ConfigError, match=r'pip install "asyncfed\[advise\]"'):
        load_optuna()
