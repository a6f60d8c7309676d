"""What another strategy would have made of the same clients."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Job, RecordedDelays
from asyncfed.delays.recorded_jobs import recorded_jobs
from asyncfed.runs.what_if import what_if
from asyncfed.store.events import Event
from asyncfed.store.schema import DISPATCH, LOST, REPORT
from asyncfed.strategies import AFL, FedAvg, FedBuff

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def event(seq, time, kind, ticket, client, detail=None):
    return Event(seq, time, kind, ticket, client, 0, None, None, detail)


def test_jobs_begin_when_their_client_is_free_and_come_in_the_order_of_their_tickets():
    events = [
        event(0, 0.0, DISPATCH, 0, 7),
        event(1, 0.0, DISPATCH, 1, 7),  # waits behind ticket 0
        event(2, 0.0, DISPATCH, 2, 3),
        event(3, 2.0, REPORT, 0, 7),
        event(4, 5.0, REPORT, 1, 7),
        event(5, 6.0, LOST, 2, 3),
        event(6, 6.0, DISPATCH, 3, 3),
        event(7, 7.0, LOST, 3, 3, '"the server was restarted"'),
        event(8, 8.0, DISPATCH, 4, 7),
    ]
    assert recorded_jobs(events) == {7: [Job(2.0), Job(3.0)], 3: [Job(6.0, lost=True)]}


def test_a_client_asked_for_more_than_was_recorded_begins_again_and_an_unknown_one_borrows():
    delays = RecordedDelays({1: [Job(1.0), Job(2.0, lost=True)]}, num_clients=2)
    assert [delays.timing(1, t, WORK, 8).compute for t in range(3)] == [1.0, 2.0, 1.0]
    assert delays.timing(1, 1, WORK, 8).lost
    assert delays.timing(0, 9, WORK, 8).compute == 1.0


def test_a_run_without_answers_says_so():
    with pytest.raises(ConfigError, match="no answered ticket"):
        RecordedDelays({0: [Job(1.0, lost=True)]}, num_clients=1)


@pytest.fixture
def recorded(small, tmp_path):
    """A simulated run serves as well as a live one: both are journals."""
    path = tmp_path / "run.sqlite"
    delays = af.delays.stragglers(share=0.25, slowness=8.0)
    how = {"strategy": AFL(concurrency=3, work=WORK), "budget": Budget(rounds=10), "delays": delays}
    af.run(small(**how), out=path)
    return path


def test_the_same_strategy_meets_the_same_arrivals_and_comes_to_the_same_model(recorded):
    runs = what_if(recorded, {"same": af.load(recorded).experiment.strategy})
    assert runs["same"].params.tobytes() == runs["recorded"].params.tobytes()
    assert runs["same"].evaluations["elapsed"] == pytest.approx(runs["recorded"].evaluations["elapsed"])


def test_a_strategy_that_waits_takes_longer_with_the_same_clients(recorded):
    others = {"sync": FedAvg(cohort_size=4, work=WORK), "fedbuff": FedBuff(concurrency=3, buffer_size=3, work=WORK)}
    runs = what_if(recorded, others)
    elapsed = {label: run.evaluations["elapsed"][-1] for label, run in runs.items()}
    assert list(runs) == ["recorded", "sync", "fedbuff"]
    assert elapsed["sync"] > 2 * elapsed["recorded"]
    assert np.isfinite([run.evaluations["objective"][-1] for run in runs.values()]).all()


def test_replay_on_the_command_line(cli, recorded, tmp_path):
    same = cli("replay", recorded)
    assert same.code == 0
    assert "params: the same when replayed" in same.out
    other = cli("replay", recorded, "--strategy", "sync", "--strategy", "fedbuff", "--plot", tmp_path / "what_if.png")
    assert other.code == 0
    assert "recorded" in other.out
    assert "sync" in other.out
    assert (tmp_path / "what_if.png").read_bytes().startswith(b"\x89PNG")
