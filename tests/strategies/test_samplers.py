from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from asyncfed.core.errors import ConfigError
from asyncfed.core.pool import ClientPool
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.record import from_plain, to_plain
from asyncfed.strategies.samplers import (
    Fair,
    ShortestQueue,
    ShuffledCycle,
    UniformAll,
    UniformIdle,
    Weighted,
    distinct_positions,
)

WEIGHTS = (1.0, 0.5, 2.0, 4.0, 0.25, 1.0)


def view_of(idle, busy=(), seed=0):
    return SimpleNamespace(
        idle=ClientPool(sorted(idle)),
        clients=ClientPool(sorted({*idle, *busy})),
        rng=Stream(purpose_key(seed, "sampling")),
    )


crowds = st.sets(st.integers(0, 9)).flatmap(
    lambda here: st.tuples(st.just(here), st.sets(st.sampled_from(sorted(here))) if here else st.just(set()))
)


@pytest.mark.parametrize("sampler", [UniformIdle(), ShuffledCycle(), Weighted(weights=WEIGHTS), Fair()])
@given(crowd=crowds, k=st.integers(0, 12), seed=st.integers(0, 1000))
def test_who_must_not_queue_is_idle_and_drawn_once(sampler, crowd, k, seed):
    here, busy = crowd
    idle = here - busy
    chosen, _ = sampler.draw(sampler.start(), view_of(idle, busy, seed), k)
    assert len(chosen) == len(set(chosen))
    assert set(chosen) <= idle
    assert len(chosen) <= k
    if not (isinstance(sampler, ShuffledCycle) and busy):  # a cycle holds back until the busy had their turn
        assert len(chosen) == min(k, len(idle))


@pytest.mark.parametrize("sampler", [UniformAll(), Weighted(weights=WEIGHTS, busy="queue")])
@given(crowd=crowds, k=st.integers(0, 12), seed=st.integers(0, 1000))
def test_who_may_queue_is_here_and_all_tickets_are_given(sampler, crowd, k, seed):
    here, busy = crowd
    assert sampler.queues
    chosen, _ = sampler.draw(sampler.start(), view_of(here - busy, busy, seed), k)
    assert set(chosen) <= here
    assert len(chosen) == (k if here else 0)


@given(
    loads=st.lists(st.integers(0, 4), max_size=6),
    k=st.integers(0, 12),
    depth=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_the_shortest_queue_is_filled_first_and_none_beyond_its_depth(loads, k, depth, seed):
    idle = [client for client, load in enumerate(loads) if not load]
    view = view_of(idle, range(len(loads)), seed)
    view.load = loads.__getitem__
    chosen, _ = ShortestQueue(depth=depth).draw(None, view, k)
    room = sum(max(0, depth - load) for load in loads)
    assert len(chosen) == min(k, room)
    after = list(loads)
    for client in chosen:
        assert after[client] == min(after)
        after[client] += 1
    assert all(after[client] <= depth for client in chosen)


def test_ties_between_queues_are_drawn_uniformly():
    view = view_of([], range(4))
    view.load = lambda client: 1 + (client == 3)
    counts = Counter(ShortestQueue(depth=3).draw(None, view, 1)[0][0] for _ in range(3000))
    assert set(counts) == {0, 1, 2}
    assert chisquare(list(counts.values())).pvalue > 0.01


def test_a_queue_without_room_is_refused():
    with pytest.raises(ConfigError, match=r"sampler.depth is 0; a client must be able to hold at least 1 ticket"):
        ShortestQueue(depth=0)


@given(n=st.integers(0, 30), k=st.integers(0, 40), seed=st.integers(0, 1000))
def test_distinct_positions_are_distinct(n, k, seed):
    chosen = distinct_positions(Stream(seed), n, k)
    assert len(chosen) == len(set(chosen)) == min(n, k)
    assert all(0 <= place < n for place in chosen)


def test_distinct_positions_are_uniform_over_ordered_selections():
    stream = Stream(purpose_key(0, "distinct"))
    counts = Counter(tuple(distinct_positions(stream, 5, 3)) for _ in range(6000))
    assert len(counts) == 5 * 4 * 3
    assert chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize("k", [1, 2])
def test_uniform_idle_is_uniform(k):
    stream = Stream(purpose_key(1, "idle"))
    view = SimpleNamespace(idle=ClientPool(range(6)), rng=stream)
    counts = Counter(client for _ in range(3000) for client in UniformIdle().draw(None, view, k)[0])
    assert chisquare([counts[client] for client in range(6)]).pvalue > 0.01


# ---- the shuffled cycle ----------------------------------------------------------------------------------------------


@given(
    num_clients=st.integers(1, 8), ks=st.lists(st.integers(1, 5), min_size=1, max_size=20), seed=st.integers(0, 1000)
)
def test_a_cycle_takes_everybody_once(num_clients, ks, seed):
    sampler, memory, drawn = ShuffledCycle(), ShuffledCycle().start(), []
    view = view_of(range(num_clients), seed=seed)
    for k in ks:
        chosen, memory = sampler.draw(memory, view, k)
        assert len(chosen) == min(k, num_clients)
        drawn += chosen
    # A draw never names anyone twice, so who begins the next cycle may wait for the next draw; counts stay within one.
    counts = [drawn.count(client) for client in range(num_clients)]
    assert max(counts) - min(counts) <= 1


@given(steps=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6)), max_size=60), seed=st.integers(0, 1000))
@settings(max_examples=60)
def test_a_cycle_takes_everybody_once_also_when_some_are_busy(steps, seed):
    sampler, memory = ShuffledCycle(), ShuffledCycle().start()
    view, busy, counts = view_of(range(6), seed=seed), [], Counter()
    for k, finished in steps:
        chosen, memory = sampler.draw(memory, view, k)
        for client in chosen:
            counts[client] += 1
            view.idle.remove(client)
            busy.append(client)
        assert max(counts.values()) - min(counts[client] for client in range(6)) <= 1
        if busy:
            view.idle.add(busy.pop(finished % len(busy)))


@given(events=st.lists(st.tuples(st.sampled_from(["draw", "leave", "come", "finish"]), st.integers(0, 5)), max_size=80))
@settings(max_examples=80)
def test_a_cycle_survives_leaves_and_joins_and_never_starves(events):
    sampler, memory = ShuffledCycle(), ShuffledCycle().start()
    view, busy = view_of(range(6), seed=1), []
    for what, client in events:
        if what == "draw":
            before = set(view.idle)
            chosen, memory = sampler.draw(memory, view, 2)
            assert set(chosen) <= before
            assert len(set(chosen)) == len(chosen)
            assert chosen or not before or busy  # with nobody at work, somebody is always found
            for each in chosen:
                view.idle.remove(each)
                busy.append(each)
        elif what == "leave":
            view.clients.remove(client)
            view.idle.remove(client)
            busy = [each for each in busy if each != client]
        elif what == "come" and client not in view.clients:
            view.clients.add(client)
            view.idle.add(client)
        elif what == "finish" and busy:
            view.idle.add(busy.pop(client % len(busy)))


def test_who_leaves_during_a_cycle_is_not_waited_for():
    sampler = ShuffledCycle()
    view = view_of({0, 1, 2}, seed=5)
    first, memory = sampler.draw(sampler.start(), view, 1)
    (gone,) = {0, 1, 2} - set(first) - {min({0, 1, 2} - set(first))}
    view.idle.remove(gone)
    view.clients.remove(gone)
    drawn = []
    for _ in range(3):
        chosen, memory = sampler.draw(memory, view, 1)
        drawn += chosen
    assert gone not in drawn
    assert Counter(drawn + first).most_common()[0][1] == 2  # the two that are left have each had two turns
    assert len(drawn) == 3


def test_the_memory_survives_being_written():
    sampler, view = ShuffledCycle(), view_of({0, 2, 3}, busy={1}, seed=2)
    _, memory = sampler.draw(sampler.start(), view, 2)
    assert from_plain(to_plain(memory), sampler.memory_type) == memory
    weighted = Weighted(weights=WEIGHTS)
    assert from_plain(list(weighted.start()), weighted.memory_type) == weighted.start()


# ---- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("busy", ["skip", "queue"])
def test_weights_are_frequencies(busy):
    sampler, view = Weighted(weights=WEIGHTS, busy=busy), view_of(range(6), seed=7)
    counts = Counter(sampler.draw(sampler.start(), view, 1)[0][0] for _ in range(4000))
    expected = [4000 * weight / sum(WEIGHTS) for weight in WEIGHTS]
    assert chisquare([counts[client] for client in range(6)], expected).pvalue > 0.01


def test_weights_are_frequencies_when_rejection_gives_up():
    # One draw in 120 is accepted, so of the 64 tries allowed more than half end in the exact scan.
    weights = (300.0, *(1.0,) * 200)
    sampler, view = Weighted(weights=weights), view_of(range(201), seed=8)
    drawn = [sampler.draw(sampler.start(), view, 1)[0][0] for _ in range(1500)]
    counts = [drawn.count(0), sum(0 < client <= 100 for client in drawn), sum(client > 100 for client in drawn)]
    assert chisquare(counts, [900, 300, 300]).pvalue > 0.01


def test_weights_count_among_the_idle_only():
    sampler, view = Weighted(weights=WEIGHTS), view_of({0, 1, 2}, busy={3, 4, 5}, seed=3)
    counts = Counter(sampler.draw(sampler.start(), view, 1)[0][0] for _ in range(3500))
    assert chisquare([counts[0], counts[1], counts[2]], [1000, 500, 2000]).pvalue > 0.01


def test_the_second_of_two_is_drawn_from_the_rest_by_weight():
    sampler, view = Weighted(weights=(1.0, 2.0, 5.0)), view_of(range(3), seed=4)
    pairs = Counter(tuple(sampler.draw(sampler.start(), view, 2)[0]) for _ in range(4000))
    chances = {(a, b): w[a] / 8 * w[b] / (8 - w[a]) for w in [(1, 2, 5)] for a in range(3) for b in range(3) if a != b}
    order = sorted(chances)
    assert chisquare([pairs[p] for p in order], [4000 * chances[p] for p in order]).pvalue > 0.01


def test_a_client_beyond_the_weights_counts_as_their_mean():
    sampler, view = Weighted(weights=(1.0, 3.0)), view_of({0, 1, 9}, seed=5)
    counts = Counter(sampler.draw(sampler.start(), view, 1)[0][0] for _ in range(3000))
    assert chisquare([counts[0], counts[1], counts[9]], [500, 1500, 1000]).pvalue > 0.01


def test_who_has_no_weight_is_never_drawn():
    sampler = Weighted(weights=(0.0, 1.0))
    assert sampler.draw(sampler.start(), view_of({0, 1}), 2)[0] == [1]
    assert sampler.draw(sampler.start(), view_of({0}), 2)[0] == []


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0, -2.0), r"sampler\.weights\[1\] is -2\.0; weights must be finite and zero or positive"),
        ((float("nan"),), r"sampler\.weights\[0\] is nan"),
        ((0.0, 0.0), "all zero, so nobody could ever be drawn; make one positive"),
        ((), "nobody could ever be drawn"),
    ],
)
def test_impossible_weights_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        Weighted(weights=weights)


def test_a_fair_sampler_names_those_with_the_fewest_tickets():
    view, memory, drawn = view_of(range(4)), Fair().start(), Counter()
    for _ in range(10):
        chosen, memory = Fair().draw(memory, view, 2)
        drawn.update(chosen)
        memory = from_plain(to_plain(memory), Fair().memory_type)
    assert drawn == dict.fromkeys(range(4), 5)


def test_a_fair_sampler_prefers_whom_it_has_seldom_named():
    _, memory = Fair().draw(Fair().start(), view_of({0, 1}, busy={2}), 2)
    chosen, memory = Fair().draw(memory, view_of({0, 1, 2}), 1)
    assert chosen == [2]
    assert memory == (1.0, 1.0, 1.0)


def test_among_equals_a_fair_sampler_draws():
    firsts = {Fair().draw((), view_of(range(5), seed=seed), 1)[0][0] for seed in range(40)}
    assert firsts == set(range(5))
