"""Tasks go out, answers come back one by one, and nothing a node does stops or spoils the run."""

import re
from math import inf, nan

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.flower.client_nodes import QUERY_SECONDS
from asyncfed.flower.grid_driver import LATE_SECONDS, MAX_ERRORS_IN_A_ROW, MAX_PUSHES, MAX_SILENCES
from asyncfed.flower.messages import pack_message
from asyncfed.live.checks import Limits
from asyncfed.rules import QFair
from asyncfed.runs.progress import seal
from asyncfed.strategies import AFL, FedBuff
from asyncfed.strategies.oort import OortSampler
from asyncfed.strategies.samplers import ShortestQueue

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def merged_tickets(federation):
    return [row.ticket for row in federation.events("merge")]


def reasons(federation, kind):
    return [row.reason for row in federation.events(kind)]


# ---- an undisturbed run ----------------------------------------------------------------------------------------------


def test_a_run_on_flower_replays_to_the_same_bits(federation):
    run = federation()
    run.finish()
    seal(run.session, run.journal)
    assert len(merged_tickets(run)) == len(set(merged_tickets(run))) == 12
    verification = af.verify(run.path)
    assert verification.ok, verification.lines


def test_losses_that_nodes_measure_guide_the_selection_and_replay_to_the_same_bits(federation):
    work = af.Work(epochs=1, batch_size=4, learning_rate=0.01, start_loss=True, start_rms=True)
    run = federation(strategy=FedBuff(concurrency=2, buffer_size=2, sampler=OortSampler(), rule=QFair(), work=work))
    run.finish()
    seal(run.session, run.journal)
    assert all(set(row.metrics) == {"start_loss", "start_rms"} for row in run.events("report"))
    verification = af.verify(run.path)
    assert verification.ok, verification.lines


def test_who_answers_is_given_work_while_others_are_still_busy(federation):
    run = federation()
    run.step()
    slow, fast = run.node_of(0), run.node_of(1)
    for done in range(1, 4):
        run.grid.work(fast)
        run.step()
        assert run.session.state.updates == done
        assert len(run.grid.inboxes[fast]) == 1  # its next task, made in the same step
    assert len(run.grid.inboxes[slow]) == 1


def test_every_message_has_a_time_to_live(federation):
    run = federation()
    run.finish()
    lives = {message.metadata.message_type: message.metadata.ttl for message in run.grid.sent}
    assert lives == {"query": QUERY_SECONDS, "train": run.ttl + LATE_SECONDS}


def test_with_a_queue_a_node_holds_its_next_task_already(federation):
    ahead = AFL(concurrency=6, aggregate="delta_mean", sampler=ShortestQueue(depth=2))
    run = federation(strategy=ahead)
    run.step()
    assert [len(run.grid.inboxes[run.node_of(client)]) for client in range(3)] == [2, 2, 2]
    run.finish()
    assert len(set(merged_tickets(run))) == 24


# ---- nodes come and go -----------------------------------------------------------------------------------------------


def test_a_node_that_joins_is_given_work_at_once(federation):
    run = federation(here=(0, 1))
    run.step()
    node = run.grid.add(2)
    run.step()
    run.grid.work(node)  # it introduces itself
    run.step()
    assert [row.client for row in run.events("join")] == [2]
    assert run.grid.inboxes[node][0].metadata.message_type == "train"


def test_a_node_that_vanishes_costs_its_ticket_only(federation):
    run = federation()
    run.step()
    gone = run.node_of(2)
    del run.grid.nodes[gone]
    run.step()
    assert [(row.client, row.reason) for row in run.events("leave")] == [(2, "its node went offline")]
    run.finish()
    assert {row.client for row in run.events("report")} == {0, 1}


def test_a_node_that_comes_back_introduces_itself_anew(federation):
    run = federation()
    run.step()
    gone = run.node_of(2)
    del run.grid.nodes[gone]
    run.step()
    run.grid.inboxes[gone].clear()
    run.grid.add(2, gone)
    run.step()
    run.grid.work(gone)
    run.step()
    assert [row.client for row in run.events("join")] == [2]
    assert len(run.grid.inboxes[gone]) == 1


def test_an_error_becomes_a_lost_ticket(federation):
    run = federation()
    run.step()
    run.grid.work(run.node_of(1), error="no room left on device")
    run.step()
    assert reasons(run, "lost") == ["its node reports error 3"]
    run.finish()
    assert {row.client for row in run.events("report")} == {0, 1, 2}


SECRET = "row 7 of /home/ann/patients.csv holds 61.5"


def test_the_text_of_a_nodes_exception_reaches_neither_journal_nor_log(federation, monkeypatch):
    """Neither from a node of this version, which sends the class alone, nor from another, which sends the text too."""
    run = federation()
    run.step()

    def fail(*arguments, **more):
        raise KeyError(SECRET)

    with monkeypatch.context() as patch:
        patch.setattr("asyncfed.flower.node_program.work_on", fail)
        run.grid.work(run.node_of(0))
    run.grid.work(run.node_of(1), error=f"<class 'ValueError'>:<'{SECRET}'>")
    run.grid.work(run.node_of(2), error=SECRET)
    run.step()
    assert sorted(reasons(run, "lost")) == [
        "its node reports error 2: KeyError",
        "its node reports error 3",
        "its node reports error 3: ValueError",
    ]
    assert "patients" not in str(run.logged)
    assert "patients" not in str(list(run.journal.event_rows()))


def test_the_text_of_an_exception_before_the_run_is_not_logged_either(federation):
    run = federation(here=(0, 1))
    node = run.grid.add(2)
    run.step()
    run.grid.work(node, error=f"<class 'sqlite3.OperationalError'>:<'{SECRET}'>")
    run.step()
    assert run.logged[-1] == f"node {node} is refused: its node reports error 3: OperationalError"


def test_a_node_whose_app_always_fails_gets_no_more_work_until_it_introduces_itself(federation):
    run = federation()
    run.step()
    node = run.node_of(1)
    for _ in range(MAX_ERRORS_IN_A_ROW):
        run.grid.work(node, error="ImportError")
        run.step()
    assert reasons(run, "leave") == ["its app failed 5 times in a row"]
    assert run.grid.inboxes[node] == []
    run.step(QUERY_SECONDS + 1)
    assert [message.metadata.message_type for message in run.grid.inboxes[node]] == ["query"]


def test_a_node_that_never_answers_costs_its_ticket_after_the_time_to_live(federation):
    run = federation()
    run.step()
    [ticket] = run.session.in_flight(0)
    run.step(run.ttl + 1)
    assert f"no answer within {run.ttl:g} s" in reasons(run, "lost")
    late = run.honest(0)[0]
    assert late.ticket == ticket
    run.grid.work(run.node_of(0))  # and comes too late
    run.step()
    assert reasons(run, "refused") == ["its ticket had been given up"]
    assert not run.session.excluded


def test_a_message_that_the_superlink_does_not_take_costs_its_ticket(federation):
    run = federation()
    run.step()
    run.grid.work(run.node_of(0))
    run.grid.accepts = False
    run.step()
    run.grid.accepts = True
    run.step()
    assert reasons(run, "lost") == ["the SuperLink did not take the message"]
    run.finish()


@pytest.mark.parametrize("broken", [1, MAX_PUSHES - 1])
def test_a_superlink_restarted_in_the_middle_of_a_message_is_handed_it_again(federation, broken):
    run = federation()
    run.step()
    run.grid.work(run.node_of(0))
    run.grid.broken_pushes = broken
    run.step()
    assert reasons(run, "lost") == []
    run.finish()


def test_a_message_that_cannot_be_handed_over_at_all_costs_its_ticket(federation):
    run = federation()
    run.step()
    run.grid.work(run.node_of(0))
    run.grid.broken_pushes = MAX_PUSHES
    run.step()
    run.step()
    assert reasons(run, "lost") == ["the SuperLink did not take the message"]
    run.finish()


def test_a_query_that_was_not_handed_over_is_sent_again(federation):
    run = federation(here=(0, 1))
    run.step()
    run.grid.add(2)
    run.grid.broken_pushes = MAX_PUSHES
    run.step()
    run.step()
    run.all_work()
    run.step()
    assert 2 in run.driver.nodes.node_of


# ---- which nodes take part -------------------------------------------------------------------------------------------

REFUSED_NODES = {
    "a number that is not there": ({"client": 7}, "its partition-id is 7; the experiment has clients 0 to 2"),
    "another one's number": ({"client": 0}, "client 0 is node 100 already; give every node a partition-id of its own"),
    "another model": (
        {"num_params": 4},
        r"its model has 4 params of '<f8'; the server's has 11 of '<f8'.*the same app",
    ),
    "other numbers": ({"dtype": "<f4"}, r"its model has 11 params of '<f4'"),
    "other data": ({"num_examples": 9}, "it has 9 examples; client 2 has 16"),
    "no data": ({"num_examples": 0}, "it has 0 examples"),
    "nonsense": ({"num_examples": "many"}, "the introduction is not valid"),
}


@pytest.mark.parametrize(("lie", "complaint"), REFUSED_NODES.values(), ids=REFUSED_NODES)
def test_a_refused_node_gets_no_work(federation, lie, complaint):
    run = federation(here=(0, 1))
    run.step()
    node = run.grid.add(2)
    run.step()
    honest = {"client": 2, "num_examples": 16, "num_params": 11, "dtype": "<f8", "asyncfed": "1"}
    run.grid.work(node, RecordDict({"asyncfed": ConfigRecord({**honest, **lie})}))
    run.step()
    assert run.grid.inboxes[node] == []
    assert not run.events("join")
    [line] = [line for line in run.logged if "is refused" in line]
    assert re.search(complaint, line)


# ---- what is refused -------------------------------------------------------------------------------------------------


def model_of(data, dtype="<f8", stype="asyncfed.little_endian", size=11):
    return ArrayRecord({"params": Array(dtype, (size,), stype, data)})


def with_model(record):
    return lambda honest: RecordDict({"asyncfed": honest["asyncfed"], "model": record})


LIES = {
    "NaN": ({"params": np.full(11, nan)}, "the model it sent is not finite"),
    "infinity": ({"params": np.full(11, inf)}, "the model it sent is not finite"),
    "gigantic": ({"params": np.full(11, 1e9)}, r"the norm of its change is 3.32e\+09; at most 1e\+06 is accepted"),
    "too short": ({"params": np.zeros(10)}, r"the model it sent has shape \(10,\); it must have \(11,\)"),
    "other numbers": (
        {"params": np.zeros(11, np.float32), "dtype": "<f4"},
        "the model it sent holds float32; it must hold float64",
    ),
    "other examples": ({"num_examples": 10**9}, "it says it has 1000000000 examples; it had declared 16"),
    "negative time": ({"duration": -1.0}, "it says it worked for -1.0 s"),
    "endless time": ({"duration": 1e9}, "it says it worked for 1e[+]09 s on a ticket that was out for"),
    "metrics": ({"metrics": {str(n): 0.0 for n in range(99)}}, "it sent 99 metrics"),
    "never dispatched": ({"ticket": 10**6}, "ticket 1000000 was never dispatched"),
    "another's": ({"ticket": "of client 1"}, r"ticket \d+ belongs to client 1"),
    "truncated": (with_model(model_of(bytes(83))), "the body has 83 bytes, which is no whole number of 8-byte numbers"),
    "oversized": (with_model(model_of(bytes(80_000))), "80000 bytes of numbers; at most 88 are read"),
    "a pickle": (with_model(model_of(b"cos\nsystem\n", stype="pickle")), "'params' is 'pickle' of '<f8'"),
    "no model": (with_model(ArrayRecord()), "the message lacks its 'params'"),
    "no array": (with_model(ConfigRecord()), "the message has no ArrayRecord called 'model'"),
    "empty": (lambda honest: RecordDict(), "the message has no ConfigRecord called 'asyncfed'"),
    "no header": (
        lambda honest: RecordDict({"asyncfed": ConfigRecord({"header": b"\xc1nonsense"}), "model": honest["model"]}),
        "the header is no valid message",
    ),
    "long header": (
        lambda honest: RecordDict({"asyncfed": ConfigRecord({"header": bytes(10**5)}), "model": honest["model"]}),
        "the header has 100000 bytes; at most 16384 are read",
    ),
}


def send_lie(run, client, lie):
    if callable(lie):
        honest = pack_message(*run.honest(client))
        run.lie(client, content=lie(honest))
        return
    if lie.get("ticket") == "of client 1":
        lie = {"ticket": run.session.in_flight(1)[0]}
    run.lie(client, **lie)


@pytest.mark.parametrize(("lie", "reason"), LIES.values(), ids=LIES)
def test_a_lie_is_refused_and_costs_its_own_ticket_only(federation, lie, reason):
    run = federation()
    run.step()
    before = run.session.state.params.copy()
    [ticket], [others] = run.session.in_flight(0), run.session.in_flight(1)
    send_lie(run, 0, lie)
    [refusal] = reasons(run, "refused")
    assert re.search(reason, refusal)
    assert np.array_equal(run.session.state.params, before)
    assert [row.ticket for row in run.events("lost")] == [ticket]
    assert run.session.in_flight(1) == [others]
    run.finish()
    assert ticket not in merged_tickets(run)
    assert len(merged_tickets(run)) == len(set(merged_tickets(run))) == 12


def test_an_answer_that_was_taken_is_not_taken_again(federation):
    run = federation()
    run.step()
    first = pack_message(*run.honest(0))
    run.grid.work(run.node_of(0))
    run.step()
    [second] = run.session.in_flight(0)
    run.grid.work(run.node_of(0), first)
    run.step()
    assert reasons(run, "refused") == ["ticket 0 was answered already"]
    assert reasons(run, "lost") == ["its node answered for another ticket"]
    assert merged_tickets(run) == [0]
    assert second not in run.session.in_flight()


def test_an_answer_without_the_secret_of_its_task_is_a_fault_and_costs_the_ticket(federation):
    run = federation(limits=Limits(faults=2))
    run.step()
    run.lie(0, session="guessed", params=np.zeros(11))
    assert reasons(run, "refused") == ["it does not carry the secret of its task"]
    assert [(row.client, row.is_fault) for row in run.events("refused")] == [(0, True)]
    assert reasons(run, "lost") == ["its reply was refused"]
    assert run.session.state.updates == 0
    run.lie(0, session=run.session.name, params=np.zeros(11))  # the session's own name is no task's secret
    assert run.session.excluded == {0}
    run.finish()
    seal(run.session, run.journal)
    verification = af.verify(run.path)
    assert verification.ok, verification.lines


def test_secrets_are_of_one_task_only(federation):
    run = federation()
    run.finish()
    tasks = [message.content["asyncfed"]["header"] for message in run.grid.sent if message.content]
    assert len(set(tasks)) == len(tasks) >= 12
    secrets = [run.honest(client)[0].session for client in range(3) if run.grid.inboxes[run.node_of(client)]]
    assert len(set(secrets)) == len(secrets)
    assert all(len(secret) == 32 for secret in secrets)


def test_a_node_that_lies_again_and_again_is_excluded(federation):
    run = federation(limits=Limits(faults=2))
    run.step()
    for _ in range(2):
        run.lie(0, params=np.full(11, nan))
    assert run.session.excluded == {0}
    run.finish()
    assert {row.client for row in run.events("report")} == {1, 2}


def test_an_excluded_node_can_fill_neither_log_nor_disk(federation):
    """However often it comes back and introduces itself: it is said once that it gets no more work."""
    run = federation(limits=Limits(faults=1))
    run.step()
    node = run.node_of(0)
    run.lie(0, params=np.full(11, nan))
    assert run.session.excluded == {0}
    said, written = len(run.logged), len(list(run.journal.event_rows()))
    for _ in range(50):
        del run.grid.nodes[node]
        run.step(0.1)
        run.grid.add(0, node)
        run.step(0.1)
        if run.grid.inboxes[node]:
            run.grid.work(node)
        run.step(QUERY_SECONDS / 10)
    assert len(run.logged) <= said + 2
    assert len(list(run.journal.event_rows())) - written <= 3 * len(run.session.in_flight()) + 40  # the others' tickets
    assert 0 not in run.session.clients


def test_a_node_that_is_always_refused_does_not_stall_afl(federation):
    run = federation(strategy=AFL(concurrency=1, work=WORK))
    while not run.session.finished:
        run.step()
        for node in [node for node in run.grid.nodes if run.grid.inboxes[node]]:
            if node == 100:
                run.lie(0, params=np.full(11, nan))
            else:
                run.grid.work(node)
    assert reasons(run, "leave") == ["the node was set aside for its faults"]
    assert {row.client for row in run.events("merge")} == {1, 2}


def test_a_node_that_never_answers_gives_up_its_slot(federation):
    """It gets no more work until it has introduced itself anew; each time it is queried later than the time before."""
    run = federation(strategy=AFL(concurrency=3, work=WORK), budget=Budget(updates=200))
    node, seen = run.node_of(0), []
    while not run.session.finished and run.now < 100 * run.ttl:
        run.step()
        for other in [other for other in run.grid.nodes if run.grid.inboxes[other]]:
            if other != node:
                if run.now % 10 == 0:
                    run.grid.work(other)
            elif run.grid.inboxes[node][0].metadata.message_type == "query":
                run.grid.work(node)
                seen.append(run.now)
            else:
                run.grid.inboxes[node].clear()
    left = [row for row in run.events("leave") if row.client == 0]
    assert {row.reason for row in left} == {f"it did not answer {MAX_SILENCES} tasks in a row"}
    assert len([row for row in run.events("lost") if row.client == 0]) <= MAX_SILENCES * (len(left) + 1)
    gaps = np.diff([row.time for row in left])
    assert len(gaps) >= 2
    assert np.all(np.diff(gaps) > 0)
    assert run.session.finished


def test_errors_of_a_node_that_fails_for_ever_come_ever_more_rarely(federation):
    run = federation(budget=Budget(updates=400))
    node = run.node_of(1)
    while not run.session.finished and run.now < 4000:
        run.step()
        if run.grid.inboxes[node]:
            is_query = run.grid.inboxes[node][0].metadata.message_type == "query"
            run.grid.work(node, error=None if is_query else "no room left on device")
        if run.now % 20 == 0:
            [run.grid.work(other) for other in run.grid.nodes if other != node and run.grid.inboxes[other]]
    left = [row.time for row in run.events("leave")]
    assert 4 <= len(left) <= 8  # once a minute it would be sixty times
    assert np.all(np.diff(np.diff(left)) > 0)


# ---- the server is restarted -----------------------------------------------------------------------------------------


def test_a_restarted_server_waits_until_its_clients_have_said_which_node_they_are(federation):
    run = federation()
    run.step()
    run.grid.work(run.node_of(0))
    run.step()
    old = run.grid.inboxes[run.node_of(1)].pop()
    run.crash()
    run.step()
    assert all(row.client in (0, 1, 2) for row in run.events("lost"))
    assert run.session.state.updates == 1
    for node in run.grid.inboxes:
        run.grid.inboxes[node] = [m for m in run.grid.inboxes[node] if m.metadata.message_type == "query"]
    assert [len(inbox) for inbox in run.grid.inboxes.values()] == [1, 1, 1]
    run.all_work()
    run.step()
    assert len(run.session.in_flight()) == 3
    assert old.metadata.message_id not in [m.metadata.message_id for m in run.grid.inboxes[run.node_of(1)]]
    run.finish()
    assert len(merged_tickets(run)) == len(set(merged_tickets(run))) == 12


def test_who_does_not_come_back_after_a_restart_has_left(federation):
    run = federation()
    run.step()
    run.crash()
    del run.grid.nodes[101]
    run.step()
    for node in (100, 102):
        run.grid.inboxes[node] = run.grid.inboxes[node][-1:]
        run.grid.work(node)
    run.step()
    run.step(31.0, return_seconds=30.0)
    assert [(row.client, row.reason) for row in run.events("leave")] == [(1, "its node was not there for 30 s")]


# ---- what goes over the wire -----------------------------------------------------------------------------------------


def bytes_of(record):
    if isinstance(record, ArrayRecord):
        return b"".join(array.data for array in record.values())
    return b"".join(value if isinstance(value, bytes) else repr(value).encode() for value in record.values())


def test_no_data_leave_a_client(federation, experiment):
    run = federation()
    run.finish()
    for message in [*run.grid.sent, *run.grid.answers]:
        allowed = {"query": {"asyncfed"}, "train": {"asyncfed", "model"}}[message.metadata.message_type]
        assert set(message.content) <= allowed
        if "model" in message.content:
            assert list(message.content["model"]) == ["params"]
            assert len(bytes_of(message.content["model"])) == 11 * 8
            assert list(message.content["asyncfed"]) == ["header"]
            assert len(bytes_of(message.content["asyncfed"])) < 400
    clients = experiment.clients()
    wire = b"".join(bytes_of(r) for m in [*run.grid.sent, *run.grid.answers] for r in m.content.values())
    assert not any(value.tobytes() in wire for value in np.concatenate([clients.x.ravel(), clients.y]))


def test_an_introduction_says_five_things(federation):
    run = federation()
    [fields] = {tuple(sorted(m.content["asyncfed"])) for m in run.grid.answers}
    assert fields == ("asyncfed", "client", "dtype", "num_examples", "num_params")
