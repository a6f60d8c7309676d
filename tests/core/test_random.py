from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

from asyncfed.core.random import CLIENT_STEP, GOLDEN, MASK, TICKET_STEP, Stream, draw_key, mix64, purpose_key, unit

WORDS = st.integers(0, MASK)


def test_it_is_splitmix64():
    # The first outputs of the reference generator seeded with 1234567 (Vigna's splitmix64.c).
    stream = Stream(1234567)
    assert [stream.bits() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(WORDS, WORDS)
def test_mixing_is_one_to_one(a, b):
    assert (mix64(a) == mix64(b)) == (a == b)


@given(purpose=WORDS, client=st.integers(0, 2**40), ticket=st.integers(0, 2**40))
def test_a_key_is_a_word(purpose, client, ticket):
    assert 0 <= draw_key(purpose, client, ticket) <= MASK


@given(WORDS)
@example(0)
@example(MASK)
def test_a_key_stands_for_its_place_among_all_words(key):
    assert 0.0 < unit(key) < 1.0
    assert abs(Fraction(unit(key)) - Fraction(key, 2**64)) <= Fraction(1, 2**53)


def test_neighbouring_keys_share_nothing():
    purpose = purpose_key(0, "train")
    keys = {draw_key(purpose, client, ticket) for client in range(100) for ticket in range(100)}
    assert len(keys) == 10_000
    assert kstest([unit(key) for key in sorted(keys)], "uniform").pvalue > 0.01
    assert purpose_key(0, "train") != purpose_key(0, "delay") != purpose_key(1, "delay")


@pytest.mark.parametrize("along", ["clients", "tickets"])
def test_neighbouring_numbers_are_independent(along):
    purpose = purpose_key(0, "compute")
    keys = [draw_key(purpose, *((n, 0) if along == "clients" else (0, n))) for n in range(8001)]
    counts = [0] * 16
    for here, there in pairwise(int(4 * unit(key)) for key in keys):
        counts[4 * here + there] += 1
    assert chisquare(counts).pvalue > 0.01


def test_a_draw_depends_on_its_index_alone():
    key = purpose_key(3, "x")
    stream = Stream(key)
    numbers = [stream.bits() for _ in range(5)]
    assert numbers == [mix64((key + (n + 1) * GOLDEN) & MASK) for n in range(5)]


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_below_is_uniform(n):
    stream = Stream(purpose_key(0, f"below {n}"))
    counts = [0] * n
    for _ in range(4000):
        counts[stream.below(n)] += 1
    assert n == 1 or chisquare(counts).pvalue > 0.01


def test_a_shuffle_is_a_uniform_permutation():
    stream = Stream(purpose_key(0, "shuffle"))
    counts = {}
    for _ in range(6000):
        items = [0, 1, 2, 3]
        stream.shuffle(items)
        assert sorted(items) == [0, 1, 2, 3]
        counts[tuple(items)] = counts.get(tuple(items), 0) + 1
    assert len(counts) == 24
    assert chisquare(list(counts.values())).pvalue > 0.01


@given(key=WORDS, n=st.integers(1, 2**40), client=st.integers(0, 2**30), ticket=st.integers(0, 2**30))
def test_what_is_written_out_for_speed_is_what_it_stands_for(key, n, client, ticket):
    assert Stream(key).below(n) == (Stream(key).bits() * n) >> 64
    assert draw_key(key, client, ticket) == mix64((key + client * CLIENT_STEP + ticket * TICKET_STEP) & MASK)
