"""Minimum participation: the bound holds whatever the wrapped sampler does, and whoever else is busy."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies.guided import view_of

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, from_plain, to_plain
from asyncfed.core.types import Work
from asyncfed.strategies import FedAvg, FedBuff
from asyncfed.strategies.minimum_participation import MinimumParticipation
from asyncfed.strategies.oort import OortSampler
from asyncfed.strategies.samplers import Fair, ShuffledCycle, UniformAll, UniformIdle
from asyncfed.testing import check_strategy


class Favourites(Config, tag_field="kind", tag="test_favourites"):
    """Draws the clients with the lowest numbers, always."""

    queues = False
    memory_type = type(None)

    def start(self):
        return None

    def draw(self, memory, view, k):
        return sorted(view.idle)[:k], None


GAPS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


PLACES = st.tuples(st.integers(1, 8), GAPS, st.lists(st.integers(1, 8), min_size=60, max_size=60))
BUSY = st.lists(st.sets(st.integers(0, 7)), min_size=6, max_size=6)


@settings(max_examples=25)
@given(PLACES, BUSY)
def test_an_idle_client_never_waits_beyond_the_bound(places, busy):
    check_bound(*places, busy)


@pytest.mark.slow
@settings(max_examples=400)
@given(PLACES, BUSY)
def test_an_idle_client_never_waits_beyond_the_bound_in_many_cases(places, busy):
    check_bound(*places, busy)


def check_bound(n, gap, wanted, busy):
    """The last client, which nobody favours, is always idle; of the others, any may be busy."""
    sampler, last = MinimumParticipation(sampler=Favourites(), gap=gap), n - 1
    most = min(n, max(wanted))
    bound = gap * n + (n - 1) + (most - 1)
    memory, waited, own, total = sampler.start(), 0, 0, 0
    for turn, k in enumerate(wanted):
        idle = (set(range(n)) - busy[turn % len(busy)]) | {last}
        chosen, memory = sampler.draw(memory, view_of(idle, busy=range(n), seed=turn), min(k, most))
        assert len(chosen) == len(set(chosen)) == min(k, most, len(idle))
        for client in chosen:
            total += 1
            waited, own = (0, own + 1) if client == last else (waited + 1, own)
            assert waited <= bound
        memory = from_plain(to_plain(memory), sampler.memory_type)
    assert own >= int(total / Fraction(bound + 1))
    assert sampler.least_share(n, most) == pytest.approx(1 / (bound + 1))


@settings(max_examples=20)
@given(st.integers(1, 6), st.integers(1, 4))
def test_without_a_gap_all_take_turns(n, turns):
    sampler = MinimumParticipation(sampler=Favourites(), gap=0.0)
    memory, drawn = sampler.start(), []
    for turn in range(n * turns):
        chosen, memory = sampler.draw(memory, view_of(range(n), seed=turn), 1)
        drawn += chosen
    assert drawn == list(range(n)) * turns


def test_by_hand_with_a_gap_of_one():
    """Three clients. After 0, 0, 0 the others have waited for 3 tickets; 1 is served, then 2, then the favourite."""
    sampler = MinimumParticipation(sampler=Favourites(), gap=1.0)
    memory, drawn = sampler.start(), []
    for _ in range(8):
        chosen, memory = sampler.draw(memory, view_of(range(3)), 1)
        drawn += chosen
    assert drawn == [0, 0, 0, 1, 2, 0, 0, 1]


def test_with_a_wide_gap_it_is_the_wrapped_sampler():
    sampler, bare = MinimumParticipation(gap=1e9), UniformIdle()
    memory = sampler.start()
    for seed in range(30):
        chosen, memory = sampler.draw(memory, view_of(range(6), seed=seed), 2)
        assert chosen == bare.draw(None, view_of(range(6), seed=seed), 2)[0]


def test_it_goes_around_a_sampler_that_observes():
    check_around(OortSampler())


@pytest.mark.slow
@pytest.mark.parametrize("inner", [Fair(), ShuffledCycle(), UniformAll()], ids=str)
def test_it_goes_around_any_sampler(inner):
    check_around(inner)


def check_around(inner):
    sampler = MinimumParticipation(sampler=inner, gap=0.5)
    check_strategy(FedBuff(concurrency=3, buffer_size=2, sampler=sampler, work=Work(start_rms=True)))


def test_what_the_wrapped_sampler_refuses_is_refused():
    with pytest.raises(ConfigError, match="draws clients by their start_rms"):
        FedAvg(cohort_size=2, sampler=MinimumParticipation(sampler=OortSampler())).check(5)
    with pytest.raises(ConfigError, match=r"sampler\.gap is -1"):
        MinimumParticipation(gap=-1.0)
