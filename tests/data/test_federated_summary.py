"""Summaries of clients, put together, are what a look at all rows would have given; and no row is in them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.core.errors import DataError
from asyncfed.core.record import from_plain, to_json
from asyncfed.data import ClientSummary, Preparation, RawTable, TableSchema, merge_summaries
from asyncfed.data.federated_summary import Moments

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def schema(**how):
    return TableSchema(**{"target": "y", "features": ("a", "town"), "labels": False, "min_level_count": 2, **how})


def rows(a, town, y=None):
    return RawTable.from_columns({"a": a, "town": town, "y": list(range(len(a))) if y is None else y})


@given(st.lists(st.lists(st.one_of(NUMBERS, st.just(float("nan"))), min_size=2), min_size=1, max_size=6))
def test_moments_of_parts_are_those_of_the_whole(parts):
    joined = Moments(0, 0, 0.0, 0.0)
    for part in parts:
        joined = joined.merge(Moments.of(np.array(part)))
    pooled = np.concatenate([np.array(part) for part in parts])
    known = pooled[~np.isnan(pooled)]
    assert (joined.count, joined.missing) == (len(known), len(pooled) - len(known))
    if len(known):
        assert joined.mean == pytest.approx(known.mean(), rel=1e-9, abs=1e-6)
        assert joined.spread == pytest.approx(known.std(), rel=1e-6, abs=1e-4)


@given(st.floats(-1e9, 1e9, allow_nan=False), st.lists(st.integers(2, 20), min_size=1, max_size=5))
def test_a_constant_is_seen_as_one_whatever_its_value(value, sizes):
    joined = Moments(0, 0, 0.0, 0.0)
    for size in sizes:
        joined = joined.merge(Moments.of(np.full(size, value)))
    assert joined.squares == 0.0


def test_a_large_offset_does_not_swallow_the_spread():
    values = 1.4e9 + np.arange(1000.0) / 1000
    joined = Moments.of(values[:300]).merge(Moments.of(values[300:]))
    assert joined.spread == pytest.approx(values.std(), rel=1e-6)


def test_two_clients_prepare_their_rows_as_if_all_lay_in_one_place():
    rng = np.random.default_rng(0)
    a = np.where(rng.random(60) < 0.2, np.nan, rng.normal(5.0, 3.0, 60))
    town = rng.choice(["A", "B", "C", ""], 60).astype(object)
    everything = rows(a, town)
    clients = [everything.take(np.arange(0, 13)), everything.take(np.arange(13, 60))]
    apart = merge_summaries([ClientSummary.of(client, schema()) for client in clients], schema())
    together = merge_summaries([ClientSummary.of(everything, schema())], schema())
    assert apart.feature_names == together.feature_names
    x = np.concatenate([apart.apply(client)[0] for client in clients])
    np.testing.assert_allclose(x, together.apply(everything)[0], rtol=1e-12, atol=1e-12)
    known = a[~np.isnan(a)]
    np.testing.assert_allclose(x[:, 0], np.where(np.isnan(a), 0.0, (a - known.mean()) / known.std()), atol=1e-12)
    names = np.where(town == "", "missing", town)
    for place, feature in enumerate(apart.feature_names[1:], 1):
        np.testing.assert_array_equal(x[:, place] == 1, names == feature.removeprefix("town="))
    assert len(apart.feature_names) == 1 + len(set(names)) - 1  # the most frequent one has no column


def test_a_summary_holds_as_many_numbers_however_many_rows_it_is_of():
    rng = np.random.default_rng(1)

    def written(count):
        table = rows(rng.normal(size=count), rng.choice(["A", "B"], count), rng.normal(size=count))
        return json.loads(to_json(ClientSummary.of(table, schema()))), table

    few, _ = written(10)
    many, table = written(1000)

    def leaves(value):
        return sum(map(leaves, value.values())) if isinstance(value, dict) else 1

    assert leaves(few) == leaves(many)
    said = json.dumps(many)
    assert not any(repr(float(value)) in said for value in table["a"].values)


def test_both_messages_survive_being_sent():
    summary = ClientSummary.of(rows([1.0, 2.0, 4.0], ["A", "B", "A"]), schema())
    assert from_plain(json.loads(to_json(summary)), ClientSummary) == summary
    preparation = merge_summaries([summary, summary], schema())
    assert from_plain(json.loads(to_json(preparation)), Preparation) == preparation


def test_one_row_is_not_summarised():
    with pytest.raises(DataError, match=r"summary of 1 row\(s\) would give them away; at least 2"):
        ClientSummary.of(rows([1.0], ["A"]), schema())


def test_levels_are_those_of_all_clients_and_rare_ones_are_one():
    one, two = rows([1, 2, 3], ["A", "A", "rare"]), rows([4, 5, 6], ["B", "B", "odd"])
    preparation = merge_summaries([ClientSummary.of(table, schema()) for table in (one, two)], schema())
    assert preparation.feature_names == ("a", "town=B", "town=other")
    np.testing.assert_array_equal(preparation.apply(one)[0][:, 1:], [[0, 0], [0, 0], [0, 1]])
    np.testing.assert_array_equal(preparation.apply(two)[0][:, 1:], [[1, 0], [1, 0], [0, 1]])
    unseen = rows([7.0], ["new"])
    np.testing.assert_array_equal(preparation.apply(unseen)[0][0, 1:], [0, 1])
    assert "town has 2 levels and 2 rare ones, taken together as other, measured against A" in preparation.notes[-1]


def test_only_the_most_frequent_levels_are_kept():
    table = rows(range(9), list("AAAABBBCC"))
    preparation = merge_summaries([ClientSummary.of(table, schema())], schema(max_levels=2))
    assert preparation.feature_names == ("a", "town=B", "town=other")


def test_without_scaling_numbers_stay_and_gaps_get_the_mean():
    table = rows([1.0, None, 3.0], ["A", "B", "A"])
    preparation = merge_summaries([ClientSummary.of(table, schema())], schema(scale=False))
    np.testing.assert_array_equal(preparation.apply(table)[0][:, 0], [1.0, 2.0, 3.0])


def test_what_cannot_be_learnt_from_is_left_out_and_said():
    table = RawTable.from_columns(
        {"a": [1.0, 2.0, 3.0], "same": [7, 7, 7], "none": [None] * 3, "one": ["x"] * 3, "id": ["p", "q", "r"],
         "y": [1.0, 2.0, 4.0]}
    )  # fmt: skip
    wanted = schema(features=("a", "same", "none", "one", "id"))
    preparation = merge_summaries([ClientSummary.of(table, wanted)], wanted)
    assert preparation.feature_names == ("a",)
    said = "left out: same (constant), none (all missing), one (constant), id (none of its 3 levels occurs 2 times)"
    assert said in preparation.notes


def test_a_column_missing_at_one_client_is_filled_and_said():
    whole, without = rows([1.0, 3.0], ["A", "B"]), rows([None, None], ["A", "B"])
    preparation = merge_summaries([ClientSummary.of(table, schema()) for table in (whole, without)], schema())
    assert preparation.apply(without)[0][:, 0].tolist() == [0.0, 0.0]
    assert "a 2 (50.0 %, 1 client(s) having none at all)" in preparation.notes[1]


def test_two_classes_become_signs_and_the_note_says_which():
    table = rows([1, 2, 3], ["A", "B", "A"], ["ham", "spam", "ham"])
    labels = schema(labels=True)
    preparation = merge_summaries([ClientSummary.of(table, labels)], labels)
    assert preparation.apply(table)[1].tolist() == [-1.0, 1.0, -1.0]
    assert preparation.notes[0] == "target: y, +1 is spam (1 training rows), −1 is ham"
    other = schema(labels=True, positive="ham")
    assert merge_summaries([ClientSummary.of(table, other)], other).apply(table)[1].tolist() == [1.0, -1.0, 1.0]


def test_numbers_as_classes_are_ordered_as_numbers():
    table = rows([1, 2, 3], ["A", "B", "A"], [9, 10, 9])
    labels = schema(labels=True)
    assert merge_summaries([ClientSummary.of(table, labels)], labels).apply(table)[1].tolist() == [-1.0, 1.0, -1.0]


def test_one_class_against_the_rest():
    table = rows([1, 2, 3], ["A", "B", "A"], ["x", "y", "z"])
    labels = schema(labels=True, positive="y")
    preparation = merge_summaries([ClientSummary.of(table, labels)], labels)
    assert preparation.apply(table)[1].tolist() == [-1.0, 1.0, -1.0]
    assert preparation.target.negative == "the rest"


def test_a_scaled_target_has_mean_zero_and_spread_one():
    table = rows([1, 2, 3], ["A", "B", "A"], [10.0, 20.0, 60.0])
    scaled = schema(target_scaling=True)
    y = merge_summaries([ClientSummary.of(table, scaled)], scaled).apply(table)[1]
    assert y.mean() == pytest.approx(0.0, abs=1e-12)
    assert y.std() == pytest.approx(1.0)
