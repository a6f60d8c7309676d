"""Replaying a journal: the same digests for every strategy, and no tampering goes unnoticed."""

import json
import re
import sqlite3

import pytest

import asyncfed as af
from asyncfed.core.errors import JournalError
from asyncfed.core.record import pack_rows, replace, unpack_rows
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn
from asyncfed.store.schema import LOST, MERGE, REPORT
from asyncfed.strategies import (
    AFL,
    AFLGuard,
    CyclicWeightTransfer,
    FedAsync,
    FedAvg,
    FedBuff,
    FedCompass,
    PublishedScripts,
    Ringmaster,
)
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll

WORK = Work(epochs=2, batch_size=4, learning_rate=0.005)
STRATEGIES = {
    "afl": AFL(concurrency=4, work=WORK),
    "afl_samples_damp": AFL(concurrency=4, weighting="samples", max_staleness=1, when_stale="damp", work=WORK),
    "afl_mixing_drop": AFL(concurrency=4, aggregate="mixing", max_staleness=2, work=WORK),
    "afl_wait": AFL(concurrency=4, aggregate="delta_mean", max_staleness=3, when_stale="wait", work=WORK),
    "afl_queue": AFL(concurrency=9, aggregate="delta_mean", sampler=UniformAll(), work=WORK),
    "fedasync": FedAsync(concurrency=4, sampler=ShuffledCycle(), work=WORK),
    "fedavg": FedAvg(cohort_size=4, work=WORK),
    "fedbuff": FedBuff(concurrency=4, buffer_size=3, work=WORK),
    "ringmaster": Ringmaster(concurrency=4, staleness_threshold=2, work=WORK),
    "fedcompass": FedCompass(min_steps=1, max_steps=6, work=WORK),
    "aflguard": AFLGuard(concurrency=4, train_trusted=True, work=WORK),
    "cyclic": CyclicWeightTransfer(work=WORK),
    "published": PublishedScripts(cohort_size=4, work=replace(WORK, start="own")),
    "published_sync": PublishedScripts(mode="sync", cohort_size=4, work=replace(WORK, start="own")),
}
CHURN = (
    Churn(time=2.0, client=5, event="join"),
    Churn(time=3.0, client=0, event="leave"),
    Churn(time=6.0, client=0, event="join"),
)
DELAYS = Delays(compute=Exponential(mean=1.0), dropout=0.1)


@pytest.fixture
def recorded(tiny, tmp_path):
    """A finished run's file."""

    def make(strategy="afl", **how):
        path = tmp_path / f"{strategy}.sqlite"
        settings = {"delays": DELAYS, "churn": CHURN, "budget": Budget(updates=60), "init": "torch", **how}
        af.run(tiny(clients=6, strategy=STRATEGIES[strategy], **settings), out=path).journal.close()
        return path

    return make


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_replay_gives_the_same_run(recorded, strategy):
    verification = af.verify(recorded(strategy), threads=1)
    assert verification.ok, verification.lines
    assert [line.split(":")[0] for line in verification.lines[1:]] == ["journal", "params", "rounds", "evaluations"]


@pytest.mark.parametrize(
    "how",
    [{"budget": Budget(elapsed=4.0)}, {"churn": tuple(Churn(time=3.0, client=c, event="leave") for c in range(6))}],
    ids=["out of time", "starved"],
)
def test_a_replay_ends_as_the_run_did(recorded, how):
    assert af.verify(recorded(**how)).ok


def test_evaluations_with_drift_verify_without_measuring_it_again(recorded):
    assert af.verify(recorded(evaluation=Evaluation(every=3, drift=True))).ok


def test_watching_a_replay_counts_the_reports(recorded):
    path, seen = recorded(), []
    af.verify(path, watch=seen.append)
    kinds = [event.kind for event in af.load(path).journal.event_rows()]
    assert seen[-1] == kinds.count(REPORT)
    assert seen == sorted(seen)


def change_events(path, change):
    """Rewrite the stored events with `change(rows)`, one block as before."""
    with sqlite3.connect(path) as file:
        (first, count, packed), *others = file.execute("SELECT first_seq, count, rows FROM events").fetchall()
        assert not others
        rows = change(unpack_rows(packed, count))
        packed = pack_rows([tuple(row) for row in rows])
        file.execute("UPDATE events SET count = ?, rows = ? WHERE first_seq = ?", (len(rows), packed, first))
    file.close()


def reseal(path):
    """What a cunning forger does: make the file agree with its seal again."""
    run = af.load(path)
    seal = json.dumps(run.sha256)
    run.journal.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE header SET value = ? WHERE name = 'sha256'", (seal,))
    file.close()


def first_of(rows, kind):
    return next(row for row in rows if row[2] == kind)


def longer(rows):
    first_of(rows, REPORT)[6] *= 2.0
    return rows


def longer_lost(rows):
    first_of(rows, LOST)[6] *= 2.0
    return rows


def backwards(rows):
    first_of(rows, REPORT)[6] = -0.5
    return rows


def later(rows):
    first_of(rows, REPORT)[1] += 0.125
    return rows


def heavier(rows):
    first_of(rows, MERGE)[6] = 0.75
    return rows


def other_client(rows):
    row = first_of(rows, REPORT)
    row[4] = (row[4] + 1) % 6
    return rows


def nobody(rows):
    first_of(rows, REPORT)[4] = 999
    return rows


def twice(rows):
    at = rows.index(first_of(rows, REPORT))
    return [*rows[: at + 1], *rows[at:]]


def without_a_loss(rows):
    rows.remove(first_of(rows, LOST))
    return rows


def without_its_tail(rows):
    return rows[: len(rows) // 2]


def beyond_the_end(rows):
    return [*rows, first_of(rows, REPORT)]


def of_no_kind(rows):
    first_of(rows, REPORT)[6] = "long"
    return rows


FORGERIES = [
    longer, longer_lost, backwards, later, heavier, other_client, nobody, twice, without_a_loss, without_its_tail,
    beyond_the_end, of_no_kind,
]  # fmt: skip


@pytest.mark.parametrize("sealed_again", [False, True], ids=["", "resealed"])
@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda f: f.__name__)
def test_changed_events_are_reported(recorded, forgery, sealed_again):
    path = recorded()
    change_events(path, forgery)
    if sealed_again:
        reseal(path)
    verification = af.verify(path, threads=1)
    assert not verification.ok
    assert sealed_again == (verification.lines[0] == "the file agrees with its seal")
    assert any("NOT" in line for line in verification.lines[1:]) or not sealed_again


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("UPDATE evaluations SET metrics = replace(metrics, '1', '2') WHERE updates = 40", "evaluations"),
        ("UPDATE rounds SET jain_index = 1.0 WHERE round = 5", "rounds"),
        ("DELETE FROM rounds WHERE round = 5", "rounds"),
        ("DELETE FROM events", "journal"),
    ],
)
def test_changed_results_are_reported(recorded, statement, part):
    path = recorded()
    with sqlite3.connect(path) as file:
        assert file.execute(statement).rowcount == 1
    file.close()
    verification = af.verify(path, threads=1)
    assert not verification.ok
    assert f"{part}: NOT THE SAME when replayed" in verification.lines


def test_a_broken_seal_is_reported_even_if_all_else_agrees(recorded):
    path = recorded()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE header SET value = '{}' WHERE name = 'sha256'")
    file.close()
    verification = af.verify(path, threads=1)
    assert not verification.ok
    assert "breaks its seal" in verification.lines[0]
    assert all("the same" in line for line in verification.lines[1:])


def test_work_that_took_longer_than_its_ticket_was_out_is_named(recorded):
    path = recorded()
    change_events(path, longer)
    words = r"it says \S+ s of a ticket that was dispatched \S+ s before"
    assert re.search(words, af.verify(path, threads=1).lines[-1])


def test_what_comes_after_the_end_is_named(recorded):
    path = recorded()
    change_events(path, beyond_the_end)
    assert "comes after the run had stopped" in af.verify(path, threads=1).lines[-1]


def test_a_removed_block_is_reported(tiny, tmp_path):
    path = tmp_path / "run.sqlite"
    experiment = tiny(clients=6, strategy=STRATEGIES["afl"], delays=DELAYS, budget=Budget(updates=800))
    af.run(experiment, out=path, checkpoint_seconds=0.0).journal.close()
    with sqlite3.connect(path) as file:
        blocks = file.execute("SELECT first_seq FROM events ORDER BY first_seq").fetchall()
        assert len(blocks) >= 3
        file.execute("DELETE FROM events WHERE first_seq = ?", blocks[1])
    file.close()
    verification = af.verify(path)
    assert not verification.ok
    assert "breaks its seal" in verification.lines[0]


def test_an_unfinished_run_cannot_be_verified_and_is_told_so(tiny, tmp_path):
    path = tmp_path / "run.sqlite"
    af.run(tiny(), out=path).journal.close()
    with sqlite3.connect(path) as file:
        file.execute("UPDATE header SET value = '\"interrupted\"' WHERE name = 'verdict'")
    file.close()
    with pytest.raises(JournalError, match=r"run\.sqlite is not finished.*asyncfed resume"):
        af.verify(path)


def test_verifying_with_another_experiment_says_what_differs(recorded, tiny):
    path = recorded()
    with pytest.raises(JournalError, match=r"strategy\.work\.epochs: 2 -> 3"):
        af.verify(
            path,
            experiment=replace(af.load(path).experiment, strategy=AFL(concurrency=4, work=replace(WORK, epochs=3))),
        )
