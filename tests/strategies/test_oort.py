"""Oort: utilities by hand, who may be drawn, the pacer, and the limits in which it is uniform."""

from collections import Counter

import pytest
from scipy.stats import chisquare
from tests.strategies.guided import told, update_of, view_of

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.strategies import FedAvg, FedBuff
from asyncfed.strategies.oort import OortSampler
from asyncfed.testing import check_strategy

EXPLOIT = {"exploration": 0.0, "least_exploration": 0.0}
THREE = (
    update_of(0, examples=10, duration=1.0, start_rms=2.0),
    update_of(1, examples=20, duration=4.0, start_rms=0.5),
    update_of(2, examples=5, duration=2.0, start_rms=1.0),
)


def test_utilities_by_hand():
    """R = 3; T is the fastest's second. 20 + sqrt(.1 ln 3); (10 + sqrt(.1 ln 3)) / 16; (5 + sqrt(.1 ln 3 / 2)) / 4."""
    sampler = OortSampler()
    memory = told(sampler, *THREE, rounds=[0, 0, 1])
    expected = [20.331453, 10.331453 / 16, 5.234373 / 4]
    assert sampler.utilities(memory, [0, 1, 2], round=2) == pytest.approx(expected, rel=1e-6)


def test_without_a_penalty_speed_does_not_count():
    sampler = OortSampler(penalty=0.0)
    memory = told(sampler, *THREE)
    assert sampler.utilities(memory, [0, 1, 2], round=0) == pytest.approx([20.0, 10.0, 5.0])
    everybody = OortSampler(preferred=1.0)
    assert everybody.utilities(told(everybody, *THREE), [0, 1, 2], round=0) == pytest.approx([20.0, 10.0, 5.0])


def test_utilities_clipped_and_scaled_as_fedscale_does():
    sampler = OortSampler(penalty=0.0, clip=0.5, normalize=True)
    memory = told(sampler, *THREE)
    assert sampler.utilities(memory, [0, 1, 2], round=0) == pytest.approx([1.0, 1.0, 0.0])


def test_exploring_only_it_is_uniform_over_the_unknown():
    sampler = OortSampler(penalty=0.0, exploration=1.0, decay=1.0)
    memory = told(sampler, update_of(0, start_rms=1e6))
    drawn = Counter(
        client for seed in range(600) for client in sampler.draw(memory, view_of(range(7), seed=seed), 2)[0]
    )
    assert drawn[0] == 0
    assert chisquare([drawn[client] for client in range(1, 7)]).pvalue > 0.01


def test_who_is_above_the_cut_off_is_drawn_in_proportion():
    sampler = OortSampler(**EXPLOIT)
    memory = told(sampler, *[update_of(c, start_rms=rms) for c, rms in enumerate([10.0, 9.6, 5.0])])
    drawn = Counter(sampler.draw(memory, view_of(range(3), seed=seed), 1)[0][0] for seed in range(600))
    assert drawn[2] == 0
    assert chisquare([drawn[0], drawn[1]], [600 * 10 / 19.6, 600 * 9.6 / 19.6]).pvalue > 0.01


def test_the_share_of_the_unknown_holds_for_single_tickets_and_falls():
    sampler = OortSampler(exploration=0.6, decay=0.5, least_exploration=0.2)
    memory = told(sampler, update_of(0, start_rms=1.0))
    for round, share in [(0, 0.6), (1, 0.3), (9, 0.2)]:
        unknown = sum(sampler.draw(memory, view_of([0, 1], round, seed), 1)[0] == [1] for seed in range(1000))
        assert unknown / 1000 == pytest.approx(share, abs=0.05)


def test_tickets_are_filled_from_either_side():
    sampler = OortSampler(exploration=1.0)
    memory = told(sampler, update_of(0, start_rms=1.0), update_of(1, start_rms=2.0))
    assert set(sampler.draw(memory, view_of(range(3)), 3)[0]) == {0, 1, 2}
    assert sorted(sampler.draw(sampler.start(), view_of(range(3)), 2)[0]) != []
    assert len(OortSampler(**EXPLOIT).draw(memory, view_of(range(5)), 4)[0]) == 4


@pytest.mark.parametrize(("second", "raised"), [(6.0, 0.35), (14.0, 0.3)])
def test_the_pacer_lets_slower_clients_in_where_utility_fell(second, raised):
    """Windows of 2 rounds. The first has nothing to be compared with."""
    sampler = OortSampler(pacer_rounds=2)
    memory = told(sampler, update_of(0, start_rms=10.0), update_of(0, start_rms=second), rounds=[1, 2])
    assert memory.preferred == 0.3
    _, memory = sampler.draw(memory, view_of([0], round=4), 1)
    assert memory.preferred == pytest.approx(raised)


def test_who_never_reports_is_given_up_but_for_an_empty_place():
    sampler = OortSampler(exploration=1.0, decay=1.0)
    memory = told(sampler, update_of(1, start_rms=1.0))
    for _ in range(3):
        chosen, memory = sampler.draw(memory, view_of([0]), 1)
        assert chosen == [0]
    assert sampler.draw(memory, view_of([0, 1]), 1)[0] == [1]
    assert sampler.draw(memory, view_of([0, 1]), 2)[0] == [1, 0]


def test_the_blacklist_counts_tickets():
    sampler = OortSampler(**EXPLOIT, blacklist=2)
    memory = told(sampler, update_of(0, start_rms=100.0), update_of(1, start_rms=1.0))
    drawn = []
    for _ in range(4):
        chosen, memory = sampler.draw(memory, view_of([0, 1]), 1)
        drawn += chosen
    assert drawn == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"exploration": 1.1}, "sampler.exploration is 1.1; it must be at least 0 and at most 1"),
        ({"penalty": -1.0}, "sampler.penalty is -1.0; it must be zero or a positive number"),
        ({"decay": 0.0}, "sampler.decay is 0.0"),
        ({"pacer_rounds": 0}, "sampler.pacer_rounds is 0; it must be at least 1 round"),
        ({"blacklist": 0}, "sampler.blacklist is 0; it must be at least 1 ticket"),
    ],
)
def test_settings_out_of_range_are_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        OortSampler(**setting)


def test_work_must_measure_what_it_goes_by():
    with pytest.raises(ConfigError, match="the sampler oort draws clients by their start_rms"):
        FedAvg(cohort_size=2, sampler=OortSampler()).check(5)


def test_it_goes_with_a_buffer_and_every_setting():
    sampler = OortSampler(blacklist=3, clip=0.9, normalize=True, pacer_rounds=1)
    check_strategy(FedBuff(concurrency=3, buffer_size=2, sampler=sampler, work=Work(start_rms=True)))
