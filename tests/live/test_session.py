import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import JournalError, ProtocolError
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.engine.stopping import Stopping
from asyncfed.live.checks import Limits
from asyncfed.live.session import Accepted, CheckpointPolicy, LiveSession, Refusal
from asyncfed.live.wire import Result
from asyncfed.store.journal import Journal
from asyncfed.strategies import AFL, FedAvg, FedBuff, PublishedScripts
from asyncfed.strategies.samplers import UniformAll

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_a_live_run_replays_to_the_same_model_and_journal(live_run):
    live = live_run()
    live.play()
    assert live.session.state.verdict == ("finished", "all 3 rounds are done")
    live.check_whole()


@pytest.mark.parametrize(
    "strategy",
    [
        AFL(concurrency=3, aggregate="latest", work=WORK),
        FedAvg(cohort_size=3, work=WORK),
        FedBuff(concurrency=3, buffer_size=2, work=WORK),
        PublishedScripts(cohort_size=2, work=WORK),
    ],
    ids=lambda s: type(s).__name__,
)
def test_other_strategies_replay_too_also_after_crashes(live_run, strategy):
    live = live_run(strategy=strategy)
    live.commit()
    chance = np.random.default_rng(1)
    while not live.session.finished:
        live.answer(int(chance.choice(list(live.held))))
        live.commit()
        if chance.random() < 0.3:
            live.crash()
            live.commit()
    live.check_whole()


def test_tickets_come_out_of_commits_only_and_once(live_run):
    live = live_run()
    first = live.commit()
    assert [a.ticket for a in first] == live.session.in_flight()
    assert live.commit() == []
    live.answer(first[0].ticket)
    (following,) = live.commit()
    assert following.ticket == 2
    assert following.base_version == live.session.state.version == 1
    task, arrays = live.session.make_task(following)
    assert (task.ticket, task.session) == (2, live.session.name)
    assert arrays == {"model": live.session.state.params}
    assert arrays["model"] is live.session.state.params


def test_what_was_committed_survives_a_crash_and_what_was_not_did_not_happen(live_run):
    live = live_run()
    live.commit()
    live.answer(0)
    live.commit()
    before = live.session.state.params.copy()
    live.answer(1)  # accepted, but never committed: nobody was told
    live.crash()
    assert live.session.state.version == 1
    assert live.session.state.params.tobytes() == before.tobytes()
    assert live.session.state.elapsed == 1.0
    assert {row.ticket for row in live.events("lost")} == set()  # not written before the next commit
    live.commit()
    assert [(row.ticket, row.detail) for row in live.events("lost")] == [
        (1, '"the server was restarted"'),
        (2, '"the server was restarted"'),
    ]
    assert min(live.held) == 3  # the numbers of tickets go on


def test_a_server_may_be_killed_while_it_recovers(live_run):
    live = live_run()
    live.commit()
    live.answer(0)
    live.commit()
    digest = live.journal.sha256()
    for _ in range(3):
        live.crash()  # and again before its first commit
    assert live.journal.sha256() == digest
    live.play()
    live.check_whole()


def test_a_run_killed_before_its_first_commit_begins_anew(live_run):
    live = live_run()
    live.crash()
    assert live.session.state.version == 0
    live.play()
    live.check_whole()


def test_replies_to_a_dead_server_are_refused_by_the_next(live_run):
    live = live_run()
    live.commit()
    client, (result, params) = live.held[0].client, live.result(0)
    live.crash()
    live.commit()
    too_late = Refusal("its ticket had been given up", is_fault=False)
    assert live.session.accept(client, result, params, 5.0) == too_late
    # the same ticket number under the new server's name is not better: it was given up, and that is no fault
    assert live.session.accept(client, replace(result, session=live.session.name), params, 5.0) == too_late


def test_payloads_are_kept_from_checkpoint_to_checkpoint(live_run):
    live = live_run(checkpoints=CheckpointPolicy(seconds=2.5))
    live.commit()
    kept = []
    for _ in range(5):
        live.answer(min(live.held))
        live.commit()
        kept.append(len(live.journal.columns("payloads")["ticket"]))
    assert kept == [1, 2, 0, 1, 2]
    large = live_run(checkpoints=CheckpointPolicy(seconds=0.0, small_bytes=0, times_its_size=0.25))
    large.commit()
    kept = []
    for _ in range(6):
        large.answer(min(large.held))
        large.commit()
        kept.append(len(large.journal.columns("payloads")["ticket"]))
    assert 0 < max(kept) < 6
    assert min(kept) == 0
    by_bytes = live_run(checkpoints=CheckpointPolicy(seconds=1e9, payload_bytes=1))
    by_bytes.commit()
    by_bytes.answer(0)
    by_bytes.commit()
    assert by_bytes.journal.columns("payloads")["ticket"] == []


def test_a_changed_payload_is_noticed(live_run):
    live = live_run()
    live.commit()
    live.answer(0)
    live.commit()
    live.journal._connection.execute("UPDATE payloads SET bytes = zeroblob(length(bytes))")
    with pytest.raises(JournalError, match="ticket 0 is not what it was"):
        live.crash()


def test_a_missing_payload_is_noticed(live_run):
    live = live_run()
    live.commit()
    live.answer(0)
    live.commit()
    live.journal._connection.execute("DELETE FROM payloads")
    with pytest.raises(JournalError, match="ticket 0 is missing"):
        live.crash()


def test_events_that_do_not_follow_are_noticed(live_run):
    live = live_run()
    live.commit()
    live.answer(0)
    live.commit()
    events = live.journal._connection
    packed = events.execute("SELECT rows FROM events WHERE first_seq > 0").fetchone()[0]
    events.execute("UPDATE events SET rows = ? WHERE first_seq > 0", (packed.replace(b"\x02\x00", b"\x02\x01", 1),))
    with pytest.raises(JournalError, match=r"does not follow|cannot have happened"):
        live.crash()


def test_a_resumed_session_cannot_be_started(live_run):
    live = live_run()
    live.commit()
    live.open()
    with pytest.raises(ProtocolError, match="has begun already"):
        live.session.start()


# ---- what is refused -------------------------------------------------------------------------------------------------

LIES = {
    "the model it sent is not finite": {"params": np.full(11, np.nan)},
    "has shape": {"params": np.zeros(10)},
    "holds float32": {"params": np.zeros(11, np.float32)},
    "sent a list": {"params": [0.0] * 11},
    "the norm of its change is 3.32e": {"params": np.full(11, 1e20)},
    "worked for -1": {"duration": -1.0},
    "worked for nan": {"duration": float("nan")},
    "on a ticket that was out for": {"duration": 60.0},
    "it says it has 9 examples; it had declared 8": {"num_examples": 9},
    "it says it has True": {"num_examples": True},
    "metric 'loss' is nan": {"metrics": {"loss": float("nan")}},
    "metric 'loss' is 1000": {"metrics": {"loss": 10**400}},
    "sent 17 metrics": {"metrics": {str(i): 0.0 for i in range(17)}},
    "the name of a metric": {"metrics": {"x" * 65: 0.0}},
    "its metrics are a list": {"metrics": [1]},
}


@pytest.mark.parametrize(("words", "lie"), LIES.items(), ids=LIES)
def test_a_lie_is_refused_journalled_and_costs_the_ticket(live_run, words, lie):
    live = live_run()
    live.commit()
    before = live.session.state.params
    refusal = live.answer(0, **lie)
    assert isinstance(refusal, Refusal)
    assert refusal.is_fault
    assert words in refusal.reason
    assert live.session.state.params is before
    live.commit()
    (written,) = live.events("refused")
    assert (written[3], written[4], written[6]) == (0, live.events("dispatch")[0][4], 1.0)
    assert words in json.loads(written[8])
    assert [row.ticket for row in live.events("lost")] == [0]
    assert len(live.session.in_flight()) == 2  # the strategy went on
    live.play()
    live.check_whole()


def test_results_for_other_tickets_cost_no_ticket(live_run):
    live = live_run(limits=Limits(faults=100))
    live.commit()
    mine, others = live.held[0], live.held[1]
    foreign = live.session.accept(mine.client, *live.result(1), 1.0)
    assert foreign == Refusal(f"ticket 1 belongs to client {others.client}", is_fault=True)
    unknown = live.session.accept(mine.client, *live.result(0, ticket=77), 1.0)
    assert unknown == Refusal("ticket 77 was never dispatched", is_fault=True)
    assert "never dispatched" in live.session.accept(mine.client, *live.result(0, ticket="x"), 1.0).reason
    assert live.session.in_flight() == [0, 1]
    result, params = live.result(0)
    assert live.session.accept(mine.client, result, params, 1.0) == Accepted(0)
    assert live.session.accept(mine.client, result, params, 1.0) == Refusal(
        "ticket 0 was answered already", is_fault=True
    )


def test_a_result_under_a_name_that_no_server_of_this_run_had_is_a_fault_and_costs_the_ticket(live_run):
    live = live_run()
    live.commit()
    refusal = live.answer(0, session="guessed")
    assert refusal == Refusal("it does not carry the secret of its task", is_fault=True)
    live.commit()
    assert [(row.ticket, row.is_fault) for row in live.events("refused")] == [(0, True)]
    assert [row.ticket for row in live.events("lost")] == [0]
    live.play()
    live.check_whole()


def test_a_wrong_secret_for_a_ticket_of_somebody_else_costs_nobody_a_ticket(live_run):
    live = live_run()
    live.commit()
    refusal = live.session.accept(live.held[0].client, *live.result(1, session="guessed"), 1.0)
    assert refusal.is_fault
    assert live.session.in_flight() == [0, 1]


def test_names_of_earlier_servers_are_remembered_over_several_crashes(live_run):
    live = live_run()
    live.commit()
    client, (result, params) = live.held[0].client, live.result(0)
    for _ in range(3):
        live.crash()
        live.commit()
    for _ in range(5):  # however often it comes: it is counted, and not written down
        assert not live.session.accept(client, result, params, 5.0).is_fault
    assert live.session.refused == 5
    assert not live.events("refused")


def test_a_fault_that_is_about_no_ticket_costs_none_and_is_written_down(live_run):
    live = live_run(limits=Limits(faults=2))
    live.commit()
    client = live.held[0].client
    assert live.session.add_fault(client, "it said hello twice", 1.0) == Refusal("it said hello twice", is_fault=True)
    assert live.session.in_flight() == [0, 1]
    live.session.add_fault(client, "it said hello twice", 1.0)
    assert live.session.excluded == {client}
    live.commit()
    written = len(list(live.journal.event_rows()))
    for _ in range(100):  # an excluded client cannot fill the disk
        assert not live.session.add_fault(client, "it said hello twice", 1.0).is_fault
        assert not live.session.refuse_unreadable(client, "nonsense", 1.0).is_fault
        assert not live.session.accept(client, *live.result(0, session="guessed"), 1.0).is_fault
    live.commit()
    assert len(list(live.journal.event_rows())) == written
    live.play()
    live.check_whole()


def test_a_late_answer_is_no_fault_once(live_run):
    live = live_run(limits=Limits(ticket_seconds=10.0))
    live.commit()
    assert live.session.expire(9.0) == []
    assert sorted(live.session.expire(11.0)) == sorted(a.client for a in live.held.values())
    client, (result, params) = live.held[0].client, live.result(0)
    late = live.session.accept(client, result, params, 12.0)
    assert late == Refusal("its ticket had been given up", is_fault=False)
    assert live.session.accept(client, result, params, 12.0).is_fault


def test_a_client_is_excluded_at_its_last_permitted_fault(live_run):
    live = live_run(limits=Limits(faults=2), budget=Budget(updates=30))
    live.commit()
    bad = live.held[0].client
    while bad in live.session.clients:
        for ticket in [t for t, a in live.held.items() if a.client == bad]:
            live.answer(ticket, duration=-1.0)
        live.commit()
        for ticket in [t for t, a in live.held.items() if a.client != bad]:
            live.answer(ticket)
        live.commit()
    assert live.session.excluded == {bad}
    assert [(row.client, row.reason) for row in live.events("leave")] == [
        (bad, "the node was set aside for its faults")
    ]
    live.session.join(bad, live.now)
    assert bad not in live.session.clients
    live.crash()
    live.commit()
    assert live.session.excluded == {bad}
    result = Result(live.session.name, 0, 0.0, 8, "<f8")
    assert "set aside" in live.session.accept(bad, result, {"model": np.zeros(11)}, live.now).reason
    live.play()
    live.check_whole()


def test_bytes_that_cannot_be_read_cost_the_ticket_being_worked_on(live_run):
    live = live_run()
    live.commit()
    client = live.held[0].client
    assert live.session.refuse_unreadable(client, "the header is no message", 1.0).is_fault
    assert 0 not in live.session.in_flight()


def test_the_norm_is_held_against_the_median(live_run):
    live = live_run(limits=Limits(median_of=4, times_median=10.0, small_norm=0.0))
    live.commit()
    for _ in range(3):
        live.answer(min(live.held))
        live.commit()
    ticket = min(live.held)
    (_, sent), (_, honest) = live.tasks[ticket], live.result(ticket)
    refusal = live.answer(ticket, params=sent["model"] + 100.0 * (honest["model"] - sent["model"]))
    assert "the norm of its change" in refusal.reason


def test_durations_are_measured_by_the_server_from_when_the_client_could_begin(live_run):
    live = live_run(strategy=AFL(concurrency=2, sampler=UniformAll(), work=WORK), num_clients=1)
    live.commit()
    live.answer(0, duration=0.2)
    live.answer(1, duration=0.1)  # it had waited behind ticket 0
    live.commit()
    assert [row.duration for row in live.events("report")] == [1.0, 1.0]
    assert live.answer(2, duration=1.04) == Accepted(2)  # its clock is a little faster than ours


# ---- the clock, comings and goings -----------------------------------------------------------------------------------


def test_a_run_ends_when_its_time_is_up(live_run):
    live = live_run(budget=Budget(elapsed=5.0))
    live.commit()
    assert live.session.accept(live.held[0].client, *live.result(0), 6.0) == Refusal("the run is over", is_fault=False)
    assert live.session.finished
    assert live.session.state.verdict == ("finished", "the time budget of 5 s is spent")
    assert live.session.state.elapsed == 5.0
    live.commit()
    live.check_whole()


def test_a_run_that_stops_early_ends_with_tickets_that_were_never_dispatched(live_run):
    live = live_run(budget=Budget(updates=12), stopping=Stopping(metric="objective", target=1e9))
    live.commit()
    while not live.session.finished:
        live.answer(min(live.held))
    assert "the target of 1e+09 is reached" in live.session.state.verdict[1]
    assert live.session.expire(1e6) == []
    live.commit()
    live.check_whole()


def test_a_client_that_guesses_a_ticket_which_was_never_dispatched_cannot_stop_the_server(live_run):
    live = live_run(budget=Budget(updates=12), stopping=Stopping(metric="objective", target=1e9))
    live.commit()
    result, arrays = live.result(min(live.held))
    while not live.session.finished:
        live.answer(min(live.held))
    shared = np.frombuffer(arrays["model"].tobytes(), np.uint8)
    never_dispatched = set(live.session.in_flight()) - set(live.session._execution.vectors.starts)
    assert never_dispatched
    for ticket in never_dispatched:
        for client in range(4):
            body, measured = live.session.copy_body(client, replace(result, ticket=ticket), shared)
            assert (bytes(body), measured) == (bytes(shared), None)
    assert live.session.accept(0, result, arrays, live.now) == Refusal("the run is over", is_fault=False)


def test_clients_may_leave_and_join(live_run):
    live = live_run(budget=Budget(updates=12))
    live.commit()
    gone = live.held[0].client
    live.session.leave(gone, "it said goodbye", 1.0)
    live.session.leave(gone, "twice", 1.0)
    live.commit()
    assert live.session.in_flight(gone) == []
    live.session.join(gone, 2.0)
    live.session.join(gone, 2.0)
    live.crash()
    live.session.join(gone, 3.0)
    live.play()
    live.check_whole()


def test_clients_absent_at_the_start_get_no_ticket_until_they_join(small):
    experiment = small(strategy=FedAvg(cohort_size=4, work=WORK))
    plan = replace(experiment.plan(1), absent=(1, 2, 3))
    session = LiveSession(experiment.problem(), plan, Journal.create(None, {}), name="x")
    session.start()
    assert {a.client for a in session.commit(0.0)} == {0}


# ---- whatever happens ------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.sampled_from(["answer", "answer", "answer", "lie", "lose", "commit", "commit", "crash", "leave", "join"]),
    max_size=60,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, seed=st.integers(0, 100), seconds=st.sampled_from([0.0, 3.0, 1e9]))
def test_whatever_happens_nothing_is_lost_or_merged_twice(live_run, steps, seed, seconds):
    how = {"strategy": AFL(concurrency=3, work=WORK), "budget": Budget(updates=20)}
    live = live_run(limits=Limits(faults=1000), checkpoints=CheckpointPolicy(seconds=seconds), **how)
    chance, committed = np.random.default_rng(seed), 0
    live.commit()
    for step in steps:
        if live.session.finished:
            break
        step_through(live, step, chance)
        if step == "commit":
            committed = live.session.state.updates
        if step == "crash":
            assert live.session.state.updates >= committed
            live.commit()
    for client in range(4):
        live.session.join(client, live.now)
    live.crash()
    live.play()
    live.check_whole()


def step_through(live, step, chance):
    held = [t for t in live.held if t in live.session.in_flight()]
    live.now += 0.5
    client = int(chance.integers(4))
    if step in ("answer", "lie") and held:
        lies = {"params": np.full(11, np.inf)} if step == "lie" else {}
        live.answer(int(chance.choice(held)), **lies)
    elif step == "lose" and held:
        live.session.lose(int(chance.choice(held)), "a test", live.now)
    elif step == "commit":
        live.commit()
    elif step == "crash":
        live.crash()
    elif step == "leave" and len(live.session.clients) > 1:
        live.session.leave(client, "a test", live.now)
    elif step == "join":
        live.session.join(client, live.now)
