"""The account of a run: by hand, and through a checkpoint."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.store.ledger import Ledger
from asyncfed.store.schema import ROUND_COLUMNS


def closed(ledger, round=1, version=1, updates=1, elapsed=1.0):
    return dict(zip(ROUND_COLUMNS, ledger.close_round(round, version, updates, elapsed), strict=True))


def test_a_round_by_hand():
    ledger = Ledger(num_clients=4, model_bytes=80)
    for duration, energy in ((2.0, 10.0), (5.0, 20.0), (3.0, 5.0)):
        ledger.count_report(duration, energy, ledger.model_bytes)
    for client, staleness in ((0, 0), (1, 3), (0, 3)):
        ledger.count_merge(client, staleness)
    row = closed(ledger, round=1, version=3, updates=3, elapsed=9.0)
    assert (row["round"], row["version"], row["updates"], row["elapsed"]) == (1, 3, 3, 9.0)
    assert (row["delay_spread"], row["longest"]) == (3.0, 5.0)
    assert (row["staleness_mean"], row["staleness_max"]) == (2.0, 3)
    assert (row["energy"], row["bytes_up"], row["participants"]) == (35.0, 240, 2)
    assert row["jain_index"] == 9 / (4 * 5)


def test_spreads_and_longest_durations_add_up_over_rounds():
    ledger = Ledger(num_clients=2, model_bytes=8)
    for durations in ((1.0, 4.0), (2.0, 2.5)):
        for duration in durations:
            ledger.count_report(duration, 0.0, ledger.model_bytes)
        row = closed(ledger)
    assert (row["delay_spread"], row["longest"]) == (0.5, 2.5)
    assert (row["cumulative_spread"], row["cumulative_longest"]) == (3.5, 6.5)


def test_a_round_without_reports_spreads_over_nothing():
    row = closed(Ledger(num_clients=2, model_bytes=8))
    assert (row["delay_spread"], row["longest"], row["staleness_mean"], row["jain_index"]) == (0.0, 0.0, 0.0, 0.0)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=50))
def test_jains_index_is_the_textbook_formula(clients):
    ledger = Ledger(num_clients=5, model_bytes=8)
    for client in clients:
        ledger.count_merge(client, 0)
    counts = [clients.count(c) for c in range(5)]
    assert ledger.jain_index() == pytest.approx(sum(counts) ** 2 / (5 * sum(n * n for n in counts)))
    assert 1 / 5 <= ledger.jain_index() <= 1


moves = st.lists(
    st.one_of(
        st.tuples(st.just("count_report"), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 10**9)),
        st.tuples(st.just("count_merge"), st.integers(0, 9), st.integers(0, 50)),
        st.tuples(st.just("close_round"), st.just(1), st.just(1), st.just(1), st.just(1.0)),
    ),
    max_size=30,
)


@given(moves, moves)
def test_a_ledger_restored_from_json_goes_on_as_if_nothing_had_happened(before, after):
    ledger = Ledger(num_clients=10, model_bytes=24)
    for name, *arguments in before:
        getattr(ledger, name)(*arguments)
    ledger.lost, ledger.dropped, ledger.bytes_down = 3, 2, 48
    restored = Ledger.from_snapshot(json.loads(json.dumps(ledger.snapshot(), allow_nan=False)))
    for name, *arguments in [*after, ("close_round", 9, 9, 9, 9.0)]:
        assert getattr(ledger, name)(*arguments) == getattr(restored, name)(*arguments)
    assert ledger.merges_by_client == restored.merges_by_client
