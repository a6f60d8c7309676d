"""From tables to clients: owners, hold-out, and rows that are left out."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import DataError
from asyncfed.data import (
    ClientSummary,
    ColumnRoles,
    ConceptShift,
    DataRequest,
    Holdout,
    RawTable,
    Table,
    TableFile,
    TableSchema,
    merge_summaries,
    preparation,
    prepare_raw_table,
    prepare_table,
)

SCHEMA = TableSchema(target="y", features=("a",), labels=False)


def raw(rows=12, owner="abc"):
    return RawTable.from_columns(
        {
            "a": [float(i) for i in range(rows)],
            "owner": [owner[i % len(owner)] for i in range(rows)],
            "y": [None if i == 0 else 2.0 * i for i in range(rows)],
        }
    )


def test_a_table_is_split_and_its_hold_out_drawn_inside_each_client():
    table = Table.from_arrays(np.arange(40.0)[:, None], np.arange(40.0), labels=False)
    prepared = prepare_table(table, DataRequest(num_clients=4, holdout=Holdout(validation=0.2, test=0.3)))
    assert prepared.clients.num_examples.tolist() == [5] * 4
    assert {part: np.diff(rows.offsets).tolist() for part, rows in prepared.held_out.items()} == {
        "validation": [2] * 4,
        "test": [3] * 4,
    }
    everything = np.concatenate([prepared.clients.y, *(rows.y for rows in prepared.held_out.values())])
    assert sorted(everything.tolist()) == list(range(40))


def test_ten_clients_where_neither_the_request_nor_the_data_say():
    table = Table.from_arrays(np.arange(40.0)[:, None], np.arange(40.0), labels=False)
    assert prepare_table(table, DataRequest()).clients.num_clients == 10


def test_rows_of_a_client_column_go_to_their_owners_and_those_without_a_target_to_none():
    prepared = prepare_raw_table(raw(), ColumnRoles(SCHEMA, "owner"), DataRequest())
    assert prepared.clients.names == ("a", "b", "c")
    assert prepared.clients.num_examples.tolist() == [3, 4, 4]
    assert prepared.clients.client(1)[1].tolist() == [2.0, 8.0, 14.0, 20.0]
    assert "1 rows without a value of y left out" in prepared.notes


def test_only_training_rows_decide_how_rows_are_scaled():
    request = DataRequest(holdout=Holdout(validation=0.0, test=0.5))
    prepared = prepare_raw_table(raw(60), ColumnRoles(SCHEMA, "owner"), request)
    assert prepared.clients.x.mean() == pytest.approx(0.0, abs=1e-12)
    assert prepared.clients.x.std() == pytest.approx(1.0)
    assert abs(prepared.held_out["test"].x.mean()) > 1e-6


def test_a_split_that_changes_data_is_given_numbers_and_keeps_its_changes():
    plain = prepare_raw_table(raw(60), ColumnRoles(SCHEMA), DataRequest(num_clients=3))
    changed = prepare_raw_table(raw(60), ColumnRoles(SCHEMA), DataRequest(ConceptShift(fraction=1.0), num_clients=3))
    assert plain.clients.names == changed.clients.names == ()
    assert plain.clients.num_examples.tolist() == changed.clients.num_examples.tolist()
    assert not np.allclose(plain.clients.y, changed.clients.y)


def test_small_clients_are_refused_or_left_out():
    lopsided = raw(12, owner="aaaaabbbbbbc")
    with pytest.raises(DataError, match=r'Client "c" has 1 row'):
        prepare_raw_table(lopsided, ColumnRoles(SCHEMA, "owner"), DataRequest())
    left = prepare_raw_table(lopsided, ColumnRoles(SCHEMA, "owner", "leave_out"), DataRequest())
    assert left.clients.names == ("a", "b")
    assert any("1 clients with fewer than 2 rows left out" in note for note in left.notes)


def test_several_classes_become_their_numbers_in_order():
    raw = RawTable.from_columns({"x": np.arange(12.0), "site": list("ab") * 6, "y": ["red", "blue", "green"] * 4})
    schema = TableSchema("y", ("x",), labels=False, classes=True)
    prepared = prepare_raw_table(raw, ColumnRoles(schema, "site"), DataRequest(classes=True))
    assert prepared.preparation.target.classes == ("blue", "green", "red")
    assert prepared.clients.y.tolist() == [2, 1, 0, 2, 1, 0, 0, 2, 1, 0, 2, 1]
    assert "target: y, 3 classes with their training rows: blue (4), green (4), red (4)" in prepared.notes
    numbers = RawTable.from_columns({"x": [1.0, 2.0, 3.0, 4.0], "y": [10, 9, 10, 2]})
    prepared = merge_summaries([ClientSummary.of(numbers, schema)], schema)
    assert prepared.target.classes == ("2", "9", "10")
    assert prepared.apply(numbers)[1].tolist() == [2, 1, 2, 0]
    with pytest.raises(DataError, match=r'The class "5" of the target "y" occurs in held-out rows only'):
        prepared.apply(RawTable.from_columns({"x": [1.0], "y": [5]}))
    with pytest.raises(DataError, match="is 1 in every row"):
        merge_summaries([ClientSummary.of(RawTable.from_columns({"x": [1, 2], "y": [1, 1]}), schema)], schema)


@pytest.mark.parametrize("client_column", [None, "shop"])
def test_a_table_prepared_sparse_has_the_same_numbers(client_column, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [f"{'abcd'[rng.integers(4)]},{rng.integers(30)},{rng.normal():.3f},{rng.normal():.3f}" for _ in range(200)]
    (tmp_path / "t.csv").write_text("shop,code,price,sold\n" + "\n".join(lines) + "\n")
    settings = {"path": str(tmp_path / "t.csv"), "target": "sold", "categories": ("code",), "min_level_count": 1}
    request = DataRequest(holdout=Holdout(), num_clients=None if client_column else 5)
    monkeypatch.setattr(preparation, "CELLS_AT_ONCE", 100)  # a few rows a block
    packed, dense = (
        TableFile(client_column=client_column, **settings, **kind).prepare(request) for kind in ({"sparse": True}, {})
    )
    assert packed.clients.x.toarray().tobytes() == dense.clients.x.tobytes()
    assert packed.clients.y.tobytes() == dense.clients.y.tobytes()
    assert packed.clients.offsets.tolist() == dense.clients.offsets.tolist()
    for part, rows in dense.held_out.items():
        assert packed.held_out[part].x.toarray().tobytes() == rows.x.tobytes()
    assert "sparse:" in packed.notes[0]
    assert "sparse = " not in af.to_toml(af.Experiment(data=TableFile(**settings)))
