"""A checkpoint that was changed on purpose, with check sums that fit, is refused before a run relies on it."""

import json
import sqlite3
from zlib import crc32

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.types import Budget


@pytest.fixture
def unfinished(small, tmp_path):
    calls = []

    def give_up(progress):
        calls.append(progress)
        if len(calls) == 3:  # the first checkpoints are written by then
            raise KeyboardInterrupt

    path = tmp_path / "run.sqlite"
    with pytest.raises(KeyboardInterrupt):
        af.run(small(budget=Budget(rounds=300)), out=path, watch=give_up, checkpoint_seconds=0.0)
    return path


def put(*path, value):
    def change(state):
        table = state
        for step in path[:-1]:
            table = table[step]
        table[path[-1]] = value

    return change


CHANGES = {
    "a text for a time": (put("now", value="late"), "Expected `float`, got `str`"),
    "a client that is not there": (put("server", "idle", value=[4]), "names client 4, but the clients are 0 to 3"),
    "an account of others": (put("ledger", "num_clients", value=7), "account is of 7 clients, but the run has 4"),
    "tickets of nobody": (put("server", "in_flight", 0, "ticket", value=10**6), "tickets that were not dispatched"),
    "fewer than no rounds": (put("server", "round", value=-1), "fewer than no versions, rounds"),
    "churn that is not planned": (put("heap", 0, 1, value=-1), "more than the 0 comings and goings"),
    "a timer of no strategy": (put("heap", 0, 1, value=2**62), "waits for a timer"),
    "a moment that is none": (put("heap", 0, 0, value=-1.0), "a moment that is no time"),
    "no clock": (lambda state: state.pop("heap"), "missing required field `heap`"),
}


@pytest.mark.parametrize(("change", "words"), CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_is_refused(unfinished, change, words):
    with sqlite3.connect(unfinished) as file:
        state = json.loads(file.execute("SELECT state FROM checkpoints").fetchone()[0])
        change(state)
        text = json.dumps(state)
        file.execute("UPDATE checkpoints SET state = ?, state_crc = ?", (text, crc32(text.encode())))
    file.close()
    with pytest.raises(JournalError, match=words):
        af.resume(unfinished)
