"""Whose updates had no part in the model."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.filtered_updates import FilteredClient, filtered_clients
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.types import Budget, Work
from asyncfed.rules import Compared
from asyncfed.store.events import Event
from asyncfed.store.schema import DISPATCH, DROP, LEAVE, MERGE, REFUSED, REPORT
from asyncfed.strategies import AFL


def events(*rows):
    return [Event(seq, float(seq), *row) for seq, row in enumerate(rows)]


def test_rows_are_counted_by_hand():
    journal = events(
        (DISPATCH, 0, 5, 0, None, None, "{}"),
        (DISPATCH, 1, 6, 0, None, None, "{}"),
        (DISPATCH, 2, 7, 0, None, None, "{}"),
        (REPORT, 0, 5, 0, 1.0, 0.0, None),
        (MERGE, 0, 5, 1, 1.0, 1.0, '{"info": {"filtered": 1, "filtered/0": 12.5}}'),
        (REPORT, 1, 6, 1, 1.0, 0.0, None),
        (DROP, 1, 6, 1, None, None, '"too stale"'),
        (REFUSED, 2, 7, 1, 1.0, None, '"the model it sent is not finite"'),
        (REFUSED, 2, 8, 1, 0.0, None, '"its ticket had been given up"'),
        (LEAVE, None, 7, 1, None, None, '"the node was set aside for its faults"'),
    )
    assert filtered_clients(journal) == [
        FilteredClient(5, 1, 1, 0, 0, 4.0, "it was far from the others' (score 12.5)", False),
        FilteredClient(6, 1, 0, 1, 0, 6.0, "too stale", False),
        FilteredClient(7, 1, 0, 0, 1, 7.0, "the model it sent is not finite", True),
    ]
    assert filtered_clients(journal)[0].share == 1.0


@pytest.fixture
def lied_to(small, tmp_path):
    strategy = AFL(concurrency=2, work=Work(epochs=2, batch_size=4, learning_rate=0.01), rule=Compared())
    attack = Liars(attack=SignFlip(scale=10.0), clients=(1,))
    path = tmp_path / "lied.sqlite"
    af.run(small(strategy=strategy, attack=attack, budget=Budget(rounds=20)), out=path)
    return path


def test_the_liar_is_named_and_mostly_filtered(lied_to):
    rows = {row.client: row for row in filtered_clients(af.load(lied_to).journal.event_rows())}
    assert rows[1].share > 0.6
    assert rows[1].filtered == max(row.filtered for row in rows.values())


def test_a_run_with_filtered_tickets_has_no_column_for_each_of_them(lied_to):
    info = af.load(lied_to).merge_info
    assert not [name for name in info if "/" in name]
    assert np.nansum(info["filtered"]) > 3


def test_terminal_and_page_show_the_liar(lied_to, cli, tmp_path):
    shown = cli("show", lied_to)
    assert shown.code == 0
    assert "Updates that had no part in the model" in shown.out
    assert "far from" in shown.out
    assert cli("report", lied_to, "--out", tmp_path / "page.html").code == 0
    assert "Updates that had no part in the model" in (tmp_path / "page.html").read_text()
