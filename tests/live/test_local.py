"""Live runs with real processes. They are small: what costs time is starting processes."""

import os
import pickle
import signal
import socket
import threading
import time

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.data import PaperRegression
from asyncfed.live.checks import Limits
from asyncfed.live.local.client_program import Slowdown, run_client
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.live.wire import PREFIX_BYTES, Hello, Result, Task, decode_array, decode_header, decode_prefix, encode
from asyncfed.runs.live import resume_live, run_live
from asyncfed.strategies import AFL
from asyncfed.strategies.samplers import UniformAll

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
PATIENT = LocalEngine(task_seconds=0.03)  # slow enough for a process to come back before the run is over


@pytest.fixture
def lively(small):
    """An experiment for real processes: three clients, all at work."""

    def make(updates=30, clients=3, **how):
        settings = {
            "num_clients": clients,
            "data": PaperRegression(num_samples=8 * clients),
            "strategy": AFL(concurrency=clients, aggregate="mixing", work=WORK),
            "budget": Budget(updates=updates),
        }
        return small(**{**settings, **how})

    return make


def of_kind(run, *kinds):
    table = run.journal.event_columns()
    rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return [row for row in rows if row["kind"] in kinds]


def check_whole(path, updates):
    """The run is whole: every version once, no ticket merged twice, and it replays to the same model."""
    run = af.load(path)
    merges = of_kind(run, "merge")
    assert [row["version"] for row in merges] == list(range(1, updates + 1))
    assert len({row["ticket"] for row in merges}) == updates
    verification = af.verify(path)
    assert verification.ok, verification.lines


def test_a_live_run_ends_like_a_simulated_one_and_replays_to_the_last_bit(lively, tmp_path):
    path = tmp_path / "live.sqlite"
    run = run_live(lively(120), out=path)
    simulated = af.run(lively(120))
    assert run.verdict == "finished"
    assert run.evaluations["objective"][-1] == pytest.approx(simulated.evaluations["objective"][-1], rel=0.2)
    check_whole(path, 120)


def test_others_are_merged_while_a_slow_client_works(lively, tmp_path):
    engine = LocalEngine(slow=((1, 10.0),), task_seconds=0.01)
    run = run_live(lively(60), engine=engine, out=tmp_path / "live.sqlite")
    merges = run.participation()
    assert merges[1] >= 1
    assert merges[0] > 3 * merges[1]
    assert merges[2] > 3 * merges[1]
    slow = [row["a"] for row in of_kind(run, "report") if row["client"] == 1]
    assert min(slow) >= 0.1


def test_a_busy_client_may_be_handed_more_and_does_it_in_order(lively, tmp_path):
    path = tmp_path / "live.sqlite"
    strategy = AFL(concurrency=6, sampler=UniformAll(), aggregate="mixing", work=WORK)
    run = run_live(lively(60, strategy=strategy), out=path)
    for client in range(3):
        tickets = [row["ticket"] for row in of_kind(run, "report") if row["client"] == client]
        assert tickets == sorted(tickets)
    check_whole(path, 60)


# ---- what a client holds ---------------------------------------------------------------------------------------------


def test_a_shard_holds_its_own_rows_only_and_trains_as_the_whole(small):
    problem = small().problem()
    for client in range(problem.num_clients):
        sent = pickle.dumps(problem.shard(client))
        shard = pickle.loads(sent)
        own, _ = problem._rows_of(client)
        for other in range(problem.num_clients):
            rows, _ = problem._rows_of(other)
            assert (rows[0].tobytes() in sent) == (other == client)
        assert shard.rows.x.base is None
        assert np.array_equal(shard.rows.x, own)
        start = np.linspace(-1, 1, problem.num_params)
        assert shard.train(start, WORK, 9).tobytes() == problem.local_train(start, client, WORK, 9).tobytes()


class SpyingProblem:
    """A problem that notes which shards were asked for."""

    def __init__(self, problem):
        self._problem, self.asked = problem, []

    def __getattr__(self, name):
        return getattr(self._problem, name)

    def shard(self, client):
        self.asked.append(client)
        return self._problem.shard(client)


def test_every_process_is_sent_one_shard(lively, tmp_path):
    experiment = lively(5)
    spy = SpyingProblem(experiment.problem())
    run_live(experiment, problem=spy, out=tmp_path / "live.sqlite")
    assert spy.asked == [0, 1, 2]


def test_a_problem_without_shards_is_refused(lively, tmp_path):
    class Whole:
        def __init__(self, problem):
            self._problem = problem

        def __getattr__(self, name):
            if name == "shard":
                raise AttributeError(name)
            return getattr(self._problem, name)

    with pytest.raises(ConfigError, match=r"has no `shard\(client\)`"):
        run_live(lively(), problem=Whole(lively().problem()), out=tmp_path / "live.sqlite")
    assert not (tmp_path / "live.sqlite").exists()


# ---- the client's side of the line -----------------------------------------------------------------------------------


def test_a_client_answers_what_it_is_asked_until_the_line_ends(small, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *how: None)  # this is not a process of its own
    problem = small().problem()
    ours, theirs = socket.socketpair()
    shard, zeros = problem.shard(2), np.zeros(11)
    client = threading.Thread(target=run_client, args=(theirs, 2, shard, Slowdown(), zeros), daemon=True)
    client.start()
    assert read_message(ours) == (Hello(2), b"")
    for piece in encode(Task("s", 7, 0, WORK, 5, "<f8"), zeros):
        ours.sendall(piece)
    result, body = read_message(ours)
    assert isinstance(result, Result)
    assert (result.session, result.ticket, result.num_examples) == ("s", 7, 8)
    assert decode_array("<f8", body).tobytes() == problem.local_train(zeros, 2, WORK, 5).tobytes()
    ours.close()
    client.join(5.0)
    assert not client.is_alive()


def read_message(line):
    def exactly(count):
        return line.recv(count, socket.MSG_WAITALL)

    header, body = decode_prefix(exactly(PREFIX_BYTES), 10_000)
    return decode_header(exactly(header)), exactly(body) if body else b""


# ---- what goes wrong -------------------------------------------------------------------------------------------------


class MischievousShard:
    """A shard that does something bad at a given training, once per file. The first training is the rehearsal."""

    def __init__(self, shard, mischief, at, marker):
        self._shard, self._mischief, self._at, self._marker, self._count = shard, mischief, at, marker, 0

    @property
    def num_examples(self):
        return self._shard.num_examples

    def train(self, params, work, key):
        self._count += 1
        if self._count == self._at and (self._marker is None or not self._marker.exists()):
            if self._marker is not None:
                self._marker.touch()
            return self._mischief(self, params)
        return self._shard.train(params, work, key)


def kill_self(shard, params):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(shard, params):
    time.sleep(60)


def poison(shard, params):
    shard._at += 1  # again and again
    return np.full_like(params, np.nan)


def oversize(shard, params):
    return np.zeros(10 * params.size)


class MischievousProblem(SpyingProblem):
    def __init__(self, problem, client, mischief, marker=None, at=3):
        super().__init__(problem)
        self._how = (client, mischief, at, marker)

    def shard(self, client):
        shard = super().shard(client)
        culprit, mischief, at, marker = self._how
        return MischievousShard(shard, mischief, at, marker) if client == culprit else shard


def test_a_killed_client_is_noticed_its_ticket_lost_and_it_comes_back(lively, tmp_path):
    path, experiment = tmp_path / "live.sqlite", lively(200)
    problem = MischievousProblem(experiment.problem(), 1, kill_self, tmp_path / "killed")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (lost,) = of_kind(run, "lost")
    assert (lost["client"], lost["detail"]) == (1, '"its process ended"')
    assert problem.asked == [0, 1, 2, 1]
    back = [row for row in of_kind(run, "report") if row["client"] == 1 and row["seq"] > lost["seq"]]
    assert back
    check_whole(path, 200)


def test_a_hanging_client_loses_its_ticket_and_is_replaced(lively, tmp_path):
    path, experiment = tmp_path / "live.sqlite", lively(500)
    problem = MischievousProblem(experiment.problem(), 1, hang, tmp_path / "hung")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path, limits=Limits(ticket_seconds=1.0))
    lost = of_kind(run, "lost")
    assert {(row["client"], row["detail"]) for row in lost} == {(1, '"no answer within 1 s"')}
    assert problem.asked == [0, 1, 2] + [1] * len(lost)  # more than one if the machine is slow to start another
    check_whole(path, 500)


def test_a_client_that_sends_nonsense_is_set_aside_and_the_rest_go_on(lively, tmp_path):
    path, experiment = tmp_path / "live.sqlite", lively(60)
    problem = MischievousProblem(experiment.problem(), 1, poison)
    run = run_live(experiment, problem=problem, out=path, limits=Limits(faults=3))
    assert [row["client"] for row in of_kind(run, "refused")] == [1, 1, 1]
    assert [row["client"] for row in of_kind(run, "leave")] == [1]
    assert np.isfinite(run.params).all()
    check_whole(path, 60)


def test_a_body_too_long_is_not_read_and_the_process_is_replaced(lively, tmp_path):
    path, experiment = tmp_path / "live.sqlite", lively(200)
    problem = MischievousProblem(experiment.problem(), 1, oversize, tmp_path / "sent")
    run = run_live(experiment, engine=PATIENT, problem=problem, out=path)
    (refused,) = of_kind(run, "refused")
    assert "880 bytes; at most 88 are read" in refused["detail"]
    assert problem.asked == [0, 1, 2, 1]
    check_whole(path, 200)


def test_a_process_that_keeps_dying_is_given_up(lively, tmp_path):
    path, experiment = tmp_path / "live.sqlite", lively(300)
    problem = MischievousProblem(experiment.problem(), 1, kill_self, at=2)
    run = run_live(experiment, engine=LocalEngine(restarts=1, task_seconds=0.03), problem=problem, out=path)
    (left,) = of_kind(run, "leave")
    assert "ended 2 times in a row" in left["detail"]
    check_whole(path, 300)


def test_a_run_without_anybody_left_ends(lively, tmp_path):
    experiment = lively(50, clients=1)
    problem = MischievousProblem(experiment.problem(), 0, kill_self, at=2)
    run = run_live(experiment, engine=LocalEngine(restarts=0), problem=problem, out=tmp_path / "live.sqlite")
    assert run.verdict == "starved"


# ---- Ctrl-C and resuming ---------------------------------------------------------------------------------------------


def test_interrupted_runs_take_what_is_nearly_done_and_can_be_resumed(lively, tmp_path):
    path = tmp_path / "live.sqlite"
    engine = LocalEngine(task_seconds=0.05)

    def interrupt(progress):
        if progress.updates >= 5:
            os.kill(os.getpid(), signal.SIGINT)

    run = run_live(lively(40), engine=engine, out=path, watch=once(interrupt))
    assert run.verdict == "interrupted"
    done = run.header["verdict"], len(of_kind(run, "merge"))
    assert 5 <= done[1] < 40
    elapsed = of_kind(run, "merge")[-1]["time"]
    run.journal.close()
    with pytest.raises(JournalError, match="is a live run"):
        af.resume(path)
    resumed = resume_live(path)
    assert resumed.verdict == "finished"
    assert of_kind(resumed, "merge")[done[1]]["time"] >= elapsed
    check_whole(path, 40)
    assert resume_live(path).sha256 == resumed.sha256  # a finished run is left as it is


def once(watch):
    """Interrupting twice would be killing."""
    done = []

    def called(progress):
        if not done:
            watch(progress)
            if progress.updates >= 5:
                done.append(True)

    return called


def test_simulated_runs_are_not_resumed_live(small, tmp_path):
    af.run(small(), out=tmp_path / "run.sqlite")
    with pytest.raises(JournalError, match="is a simulated run"):
        resume_live(tmp_path / "run.sqlite")


def test_what_makes_no_sense_live_is_refused(small, tmp_path):
    with pytest.raises(ConfigError, match="come and go by themselves"):
        run_live(small(churn=(af.Churn(time=1.0, client=0, event="leave"),)), out=tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match=r"evaluation\.drift"):
        run_live(small(evaluation=af.Evaluation(drift=True)), out=tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match="slow names client 9; clients are numbered 0 to 3"):
        run_live(small(), engine=LocalEngine(slow=((9, 2.0),)), out=tmp_path / "x.sqlite")
    with pytest.raises(ConfigError, match="must be 1 or more"):
        LocalEngine(slow=((1, 0.5),))
    assert not (tmp_path / "x.sqlite").exists()
