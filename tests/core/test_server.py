import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from asyncfed.core.errors import ProtocolError, StrategyError
from asyncfed.core.record import Config, Record
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Cancel, Dispatch, Drop, Merge, Report, Stop, Train, Wake, Work
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll
from asyncfed.strategies.schedules import DelayAware
from asyncfed.uplinks import ErrorFeedback, TopK

STRATEGIES = [
    AFL(concurrency=3),
    AFL(concurrency=3, max_staleness=1, when_stale="wait", aggregate="delta_sum"),
    FedAsync(concurrency=4, sampler=UniformAll()),
    FedAvg(cohort_size=3, sampler=ShuffledCycle()),
    FedBuff(concurrency=3, buffer_size=2),
]


def report_of(dispatch, duration=1.0, arrived_at=0.0, num_examples=1):
    return Report(dispatch.ticket, dispatch.client, arrived_at, duration, num_examples)


def first(server):
    return next(iter(server.outstanding.values()))


# ---- invariants under any sequence of inputs -------------------------------------------------------------------------

inputs = st.lists(
    st.tuples(
        st.sampled_from(["report", "report", "report", "skip", "lose", "leave", "join", "wrong"]),
        st.integers(0, 7),
        st.floats(0, 1e6),
    ),
    max_size=60,
)


def put_in(server, what, number, duration):
    """Hand in one thing; a wrong one must be refused. Returns what was decided."""
    tickets = list(server.outstanding)
    if what == "report" and tickets:
        return server.receive(report_of(server.outstanding[tickets[number % len(tickets)]], duration))
    if what == "skip" and tickets:
        return server.skip(tickets[number % len(tickets)], duration)
    if what == "lose" and tickets:
        return server.lose(tickets[number % len(tickets)])
    if what == "leave" and number in server.clients:
        return server.leave(number)
    if what == "join" and number not in server.clients:
        return server.join(number, number)
    if what == "wrong":
        refuse_all(server, number)
    return []


def refuse_all(server, number):
    known = next(iter(server.outstanding.values()), None)
    wrong = [
        lambda: server.receive(Report(10_000 + number, 0, 0.0, 1.0, 1)),
        lambda: server.receive(Report(-1, 0, 0.0, 1.0, 1)),
        lambda: server.lose(10_000 + number),
        lambda: server.leave(99),
        lambda: server.join(-1, 1),
        lambda: server.join(50, -1),
        lambda: server.start(),
    ]
    wrong += [lambda c=c: server.join(c, 1) for c in list(server.clients)[:1]]
    if known is not None:
        wrong += [
            lambda: server.receive(Report(known.ticket, known.client + 1, 0.0, 1.0, 1)),
            lambda: server.receive(report_of(known, duration=-1.0)),
            lambda: server.receive(report_of(known, duration=float("nan"))),
            lambda: server.receive(report_of(known, arrived_at=float("nan"))),
            lambda: server.receive(report_of(known, num_examples=-1)),
        ]
    before = server.snapshot()
    for attempt in wrong:
        with pytest.raises(ProtocolError):
            attempt()
        assert server.snapshot() == before  # refused, and nothing changed


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@given(steps=inputs, seed=st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_the_books_are_kept(strategy, steps, seed):
    server = Server(strategy, [1, 2, 3, 4, 5], seed)
    outputs = server.start()
    reported, settled = set(), set()
    for step in steps:
        before = set(server.outstanding) | set(server.waiting)
        new = put_in(server, *step)
        outputs += new
        reported |= set(server.waiting)
        for output in new:
            if isinstance(output, Merge | Drop):
                tickets = output.tickets if isinstance(output, Merge) else (output.ticket,)
                assert not settled & set(tickets)  # no ticket is merged or dropped twice
                assert set(tickets) <= before
                settled |= set(tickets)
        idle, clients = set(server.idle), set(server.clients)
        busy = {dispatch.client for dispatch in server.outstanding.values()}
        assert idle | busy == clients
        assert not idle & busy
        assert not set(server.outstanding) & set(server.waiting)
    merges = [output for output in outputs if isinstance(output, Merge)]
    assert server.version == len(merges)
    assert server.updates == sum(len(merge.tickets) for merge in merges)
    assert server.round == sum(merge.ends_round for merge in merges)
    dispatches = [output for output in outputs if isinstance(output, Dispatch)]
    assert [dispatch.ticket for dispatch in dispatches] == list(range(len(dispatches)))
    bases = [dispatch.base_version for dispatch in dispatches]
    assert bases == sorted(bases)  # what `oldest_base` relies on


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
@given(steps=inputs, cut=st.integers(0, 60), seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_a_restored_server_decides_the_same(strategy, steps, cut, seed):
    server = Server(strategy, [1, 2, 3, 4, 5], seed)
    server.start()
    for step in steps[:cut]:
        put_in(server, *step)
    snapshot = server.snapshot()
    written = json.dumps(snapshot)
    restored = Server(strategy, [1, 2, 3, 4, 5], seed)
    restored.restore(json.loads(written))
    for step in steps[cut:]:
        assert put_in(restored, *step) == put_in(server, *step)
    assert restored.snapshot() == server.snapshot()
    assert json.dumps(snapshot) == written  # a snapshot stays what it was while the run goes on


# ---- who is refused, and what is said --------------------------------------------------------------------------------


@pytest.fixture
def server():
    server = Server(FedAsync(concurrency=2), [1, 1, 1])
    server.start()
    return server


def test_a_ticket_counts_once(server):
    dispatch = first(server)
    server.receive(report_of(dispatch))
    with pytest.raises(
        ProtocolError, match=rf"client {dispatch.client} reported ticket 0 twice, or after it was given"
    ):
        server.receive(report_of(dispatch))
    with pytest.raises(ProtocolError, match="ticket 0 cannot be lost: it is not in flight"):
        server.lose(0)


def test_a_late_report_of_a_lost_ticket_is_refused(server):
    dispatch = first(server)
    server.lose(dispatch.ticket)
    with pytest.raises(ProtocolError, match="twice, or after it was given up as lost; the report is refused"):
        server.receive(report_of(dispatch))


def test_foreign_tickets_are_refused(server):
    dispatch = first(server)
    with pytest.raises(ProtocolError, match=rf"which belongs to client {dispatch.client}; the report is refused"):
        server.receive(Report(dispatch.ticket, dispatch.client + 1, 0.0, 1.0, 1))
    with pytest.raises(ProtocolError, match=r"never dispatched \(the next one will be 2\)"):
        server.receive(Report(7, 0, 0.0, 1.0, 1))


def test_impossible_reports_and_crowds_are_refused(server):
    with pytest.raises(ProtocolError, match=r": -1\.0 s, 1 examples, .*; not all 0 or more; the report is"):
        server.receive(report_of(first(server), duration=-1.0))
    with pytest.raises(ProtocolError, match=r"at nan s; not all 0 or more"):
        server.receive(report_of(first(server), arrived_at=float("nan")))
    with pytest.raises(
        ProtocolError, match=r"client 5 cannot join with -2 examples: .* one of the numbers is negative"
    ):
        server.join(5, -2)
    with pytest.raises(ProtocolError, match=r"client 1 cannot join with 1 examples: it is here already"):
        server.join(1, 1)
    with pytest.raises(ProtocolError, match="client 9 cannot leave: it is not here"):
        server.leave(9)
    with pytest.raises(ProtocolError, match="begun already"):
        server.start()


# ---- the end ---------------------------------------------------------------------------------------------------------


def play(server, arrivals, **report):
    for _ in range(arrivals):
        outputs = server.receive(report_of(first(server), **report))
        if server.stopped is not None:
            return outputs
    return []


def test_budgets_end_the_run():
    for budget, reason in [
        (Budget(rounds=2), "all 2 rounds are done"),
        (Budget(updates=5), "all 5 updates are merged"),
    ]:
        server = Server(FedAsync(concurrency=3), [1] * 4, budget=budget)
        server.start()
        outputs = play(server, 100)
        assert outputs[-1] == Stop(reason)
        assert not [output for output in outputs if isinstance(output, Dispatch)]  # nothing is begun that has no use
        assert server.updates == (6 if budget.rounds else 5)


def test_the_time_budget_ends_the_run_before_what_comes_after_it():
    server = Server(FedAsync(concurrency=1), [1], budget=Budget(elapsed=10.0))
    server.start()
    assert server.receive(report_of(first(server), arrived_at=10.0))  # in time
    assert server.receive(report_of(first(server), arrived_at=10.5)) == [Stop("the time budget of 10 s is spent")]
    assert server.updates == 1


def test_after_the_end_everything_is_refused_and_nothing_changes():
    server = Server(FedAsync(concurrency=2), [1] * 3, budget=Budget(updates=1, elapsed=5.0))
    server.start()
    play(server, 1)
    before = server.snapshot()
    attempts = [
        lambda: server.receive(report_of(first(server))),
        lambda: server.receive(report_of(first(server), arrived_at=99.0)),
        lambda: server.lose(first(server).ticket),
        lambda: server.leave(first(server).client),
        lambda: server.join(7, 1),
    ]
    for attempt in attempts:
        with pytest.raises(ProtocolError, match="the run has stopped"):
            attempt()
        assert server.snapshot() == before


def test_the_engine_may_halt(server):
    assert server.halt("diverged") == [Stop("diverged")]
    assert server.stopped == "diverged"


# ---- who comes and goes ----------------------------------------------------------------------------------------------


def test_absent_clients_are_not_drawn_until_they_join():
    server = Server(AFL(concurrency=3), [1] * 5, absent={0, 1, 2, 4})
    assert [output.client for output in server.start()] == [3]
    assert [output.client for output in server.join(1, 9)] == [1]
    assert server.num_examples(1) == 9


def test_a_client_may_come_that_was_never_counted():
    server = Server(AFL(concurrency=3), [1])
    server.start()
    assert [output.client for output in server.join(6, 2)] == [6]
    assert (server.num_examples(5), server.num_examples(6)) == (0, 2)


class CountedSizes(Sequence):
    """The samples of very many clients, and how many of them were asked for."""

    def __init__(self, num_clients):
        self.num_clients, self.asked = num_clients, 0

    def __len__(self):
        return self.num_clients

    def __getitem__(self, client):
        if not 0 <= client < self.num_clients:
            raise IndexError(client)
        self.asked += 1
        return client % 7 + 1


def test_a_restored_server_asks_only_for_the_samples_of_those_who_came_or_left():
    def make(num_clients):
        sizes = CountedSizes(num_clients)
        return Server(FedBuff(concurrency=2, buffer_size=2), sizes, seed=1), sizes

    small, _ = make(50)
    for server in (small, make(10**8)[0]):
        server.start()
        for client in (3, 40, 11):
            server.leave(client)
        server.join(40, 25)
        server.join(server.clients[0] + 10**9, 4)
        restored, sizes = make(len(server._examples))
        restored.restore(server.snapshot())
        assert sizes.asked < 10
        assert restored._gained == server._gained == 4 + (25 - 6) - 4 - 5
    restored, _ = make(50)
    restored.restore(small.snapshot())
    assert restored.total_examples == sum(map(small.num_examples, small.clients))


def test_leaving_loses_every_ticket_of_the_client_and_keeps_what_it_reported():
    server = Server(FedAvg(cohort_size=3, sampler=UniformAll()), [1], seed=0)
    server.start()
    assert len(server.outstanding) == 3  # one client, three tickets queued
    server.receive(report_of(first(server)))
    outputs = server.leave(0)
    assert [output.tickets for output in outputs if isinstance(output, Merge)] == [(0,)]
    assert not server.outstanding
    assert not server.waiting


def test_the_strategy_hears_of_a_leave_before_the_losses_it_causes():
    server = Server(Listens(), [1, 1])
    server.start()
    server.leave(0)
    assert server.snapshot()["state"]["heard"] == ("leave", "lost")


# ---- chance ----------------------------------------------------------------------------------------------------------


def test_the_draws_of_successive_inputs_are_uniform_and_unrelated():
    server = Server(FedAsync(concurrency=1), [1] * 4, seed=3)
    server.start()
    drawn = []
    for _ in range(4001):
        drawn.append(first(server).client)
        server.receive(report_of(first(server)))
    pairs = Counter(pairwise(drawn))
    assert chisquare([pairs[a, b] for a in range(4) for b in range(4)]).pvalue > 0.01
    lagged = Counter(zip(drawn, drawn[2:], strict=False))
    assert chisquare([lagged[a, b] for a in range(4) for b in range(4)]).pvalue > 0.01


def test_another_seed_draws_others():
    orders = {
        tuple(output.client for output in Server(AFL(concurrency=5), [1] * 50, seed).start()) for seed in range(9)
    }
    assert len(orders) == 9


# ---- rates -----------------------------------------------------------------------------------------------------------


def test_the_rate_follows_round_and_delay_spread_at_the_moment_of_dispatch():
    schedule = DelayAware(delay_penalty=0.5, over="round", initial_spread=2.0)
    server = Server(FedAsync(concurrency=2, work=Work(learning_rate=1.0), schedule=schedule), [1, 1])
    assert {output.work.learning_rate for output in server.start()} == {0.5}  # 1/(1 + 0.5*2)
    server.receive(report_of(first(server), duration=1.0))
    outputs = server.receive(report_of(first(server), duration=7.0))  # ends round 0; the spread is 6 s
    assert outputs[-1].work.learning_rate == 1.0 / (1 + 0.5 * 6) / 2**0.5


# ---- faults of a strategy --------------------------------------------------------------------------------------------


class Heard(Record):
    heard: tuple[str, ...] = ()


class Listens(Config):
    """Trains client 0 and keeps a list of what it is told."""

    @property
    def state_type(self):
        return Heard

    def check(self, num_clients):
        pass

    def start(self, view):
        return Heard(), [Train(0, Work())]

    def on_update(self, state, update, view):
        return Heard((*state.heard, "update")), []

    def on_lost(self, state, dispatch, view):
        return Heard((*state.heard, "lost")), []

    def on_join(self, state, client, view):
        return Heard((*state.heard, "join")), []

    def on_leave(self, state, client, view):
        return Heard((*state.heard, "leave")), []


class Answers(Listens):
    """Answers a report, or a leave, with whatever it was made with."""

    actions: tuple = ()
    on: str = "update"

    def on_update(self, state, update, view):
        return state, self.actions if self.on == "update" else []

    def on_leave(self, state, client, view):
        return state, self.actions if self.on == "leave" else []


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([Merge((0, 0), (1.0, 1.0))], "merges ticket 0, which is not a reported, unmerged one"),
        ([Merge((5,), (1.0,))], "merges ticket 5"),
        ([Merge((), ())], "merges 0 tickets with 0 weights"),
        ([Merge((0,), (1.0, 2.0))], "merges 1 tickets with 2 weights"),
        ([Merge((0,), (float("inf"),))], "all must be finite"),
        ([Merge((0,), (1.0,), float("nan"))], "all must be finite"),
        ([Drop(0, "a"), Drop(0, "b")], "drops ticket 0, which is not a reported one"),
        ([Train(9, Work())], "trains client 9, which is not here"),
        ([Train(1, Work(start="own")), Train(1, Work(start="own"))], "trains busy client 1 on work that remembers"),
        ([Cancel(0, "late")], "cancels ticket 0, which is not out"),
        ([Cancel(7, "late")], "cancels ticket 7, which is not out"),
        ([Train(1, Work()), Cancel(1, "a"), Cancel(1, "b")], "cancels ticket 1, which is not out"),
        ([Wake(1.0)], "it needs `on_wake`"),
        (["hello"], "answered 'hello', which is not a Train, Merge, Drop, Cancel, Wake or Stop"),
    ],
)
def test_a_strategy_that_asks_for_the_impossible_is_blamed(actions, message):
    server = Server(Answers(actions=actions), [1, 1])
    server.start()
    with pytest.raises(StrategyError, match=message) as caught:
        server.receive(report_of(first(server)))
    assert "Answers" in str(caught.value)
    assert "a defect of the strategy" in str(caught.value)


def test_a_client_that_is_leaving_cannot_be_trained():
    server = Server(Answers(actions=[Train(0, Work())], on="leave"), [1, 1])
    server.start()
    with pytest.raises(StrategyError, match="trains client 0, which is not here"):
        server.leave(0)


def test_a_strategy_may_stop_the_run():
    server = Server(Answers(actions=[Drop(0, "done"), Stop("enough"), Train(1, Work())]), [1, 1])
    server.start()
    assert server.receive(report_of(first(server))) == [Drop(0, "done"), Stop("enough")]
    assert server.stopped == "enough"


# ---- timers and cancelled tickets ------------------------------------------------------------------------------------


class Scripted(Listens):
    """Starts client 0 and 1 on `work`; answers reports, losses and timers with what it was made with."""

    work: Work = Work()
    on_report: tuple = ()
    when_lost: tuple = ()
    on_timer: tuple = ()

    def start(self, view):
        return Heard(), [Train(0, self.work), Train(1, self.work)]

    def on_update(self, state, update, view):
        return state, self.on_report

    def on_lost(self, state, dispatch, view):
        return state, self.when_lost

    def on_wake(self, state, number, now, view):
        return Heard((*state.heard, f"{number} at {now}")), self.on_timer


@pytest.mark.parametrize("wake", [Wake(-1.0), Wake(float("inf")), Wake(float("nan")), Wake(1.0, -1)])
def test_a_timer_that_cannot_be_is_refused(wake):
    server = Server(Scripted(on_report=[wake]), [1, 1])
    server.start()
    with pytest.raises(StrategyError, match="a time and a number of at least 0"):
        server.receive(report_of(first(server)))


def test_the_strategy_is_woken_with_the_number_and_the_time():
    server = Server(Scripted(on_report=[Drop(0, "seen"), Wake(2.5, 7)], on_timer=[Stop("enough")]), [1, 1])
    server.start()
    assert server.receive(report_of(first(server)))[1] == Wake(2.5, 7)
    assert server.wake(7, 2.5) == [Stop("enough")]
    assert server.snapshot()["state"]["heard"] == ("7 at 2.5",)
    with pytest.raises(ProtocolError, match="the run has stopped"):
        server.wake(7, 3.0)


def test_a_cancelled_client_is_idle_at_once_and_its_late_report_is_refused():
    server = Server(Scripted(on_timer=[Cancel(0, "too slow"), Train(0, Work())]), [1, 1])
    given_up, kept = server.start()
    assert list(server.idle) == []
    outputs = server.wake(0, 1.0)
    assert outputs == [Cancel(0, "too slow"), Dispatch(2, 0, 0, Work())]
    assert (list(server.outstanding), server.in_flight, server.load(0)) == ([kept.ticket, 2], 2, 1)
    with pytest.raises(ProtocolError, match="twice, or after it was given up"):
        server.receive(report_of(given_up))
    with pytest.raises(ProtocolError, match="cannot be lost"):
        server.lose(given_up.ticket)


def test_a_cancelled_client_without_a_new_ticket_may_be_drawn():
    server = Server(Scripted(on_timer=[Cancel(1, "no longer wanted")]), [1, 1, 1])
    server.start()
    server.wake(0, 1.0)
    assert sorted(server.idle) == [1, 2]
    assert server.oldest_base == 0


def test_only_one_of_a_clients_tickets_is_cancelled():
    server = Server(Scripted(on_report=[Drop(1, "seen"), Train(0, Work())], on_timer=[Cancel(0, "old")]), [1, 1])
    server.start()
    server.receive(report_of(server.outstanding[1]))  # client 0 now holds tickets 0 and 2
    server.wake(0, 1.0)
    assert (list(server.outstanding), server.load(0), list(server.idle)) == ([2], 1, [1])


def test_a_restored_server_is_woken_and_cancels_as_the_other_does():
    strategy = Scripted(on_report=[Drop(0, "seen"), Wake(1.0, 3)], on_timer=[Cancel(1, "late"), Train(0, Work())])
    server = Server(strategy, [1, 1])
    server.start()
    server.receive(report_of(first(server)))
    restored = Server(strategy, [1, 1])
    restored.restore(json.loads(json.dumps(server.snapshot())))
    assert restored.wake(3, 1.0) == server.wake(3, 1.0) == [Cancel(1, "late"), Dispatch(2, 0, 0, Work())]
    assert restored.snapshot() == server.snapshot()


# ---- what a client remembers -----------------------------------------------------------------------------------------

REMEMBERING = Work(uplink=(ErrorFeedback(codec=TopK(fraction=0.5)),))


class Trains(Listens):
    """One ticket at a time for client 0, which remembers; reports are merged, or dropped if their duration is 0."""

    work: Work = REMEMBERING

    def start(self, view):
        return Heard(), [Train(0, self.work)]

    def on_update(self, state, update, view):
        ticket = update.report.ticket
        decided = Merge((ticket,), (1.0,)) if update.report.duration else Drop(ticket, "not wanted")
        return state, [decided, Train(0, self.work)]

    def on_lost(self, state, dispatch, view):
        return state, [Train(0, self.work)]

    def on_wake(self, state, number, now, view):
        return state, [*(Cancel(ticket, "again") for ticket in view.outstanding), Train(0, self.work)]


def trains(**how):
    server = Server(Trains(**how), [1])
    server.start()
    return server


def test_a_ticket_names_the_last_accepted_one():
    server = trains()
    assert first(server).memory == -1
    server.receive(report_of(first(server)))
    assert first(server).memory == 0
    server.lose(1)
    assert first(server).memory == 0  # ticket 2: what was lost is not remembered
    server.wake(0, 1.0)
    assert first(server).memory == 0  # ticket 3: nor what was cancelled
    server.receive(report_of(first(server), duration=0.0))
    assert first(server).memory == 0  # ticket 4: nor what was dropped
    server.receive(report_of(first(server)))
    assert first(server).memory == 4


def test_a_dropped_first_ticket_leaves_the_client_without_a_memory():
    server = trains()
    server.receive(report_of(first(server), duration=0.0))
    assert first(server).memory == -1


def test_a_client_that_goes_on_from_its_own_model_does_so_also_after_a_drop():
    server = trains(work=Work(start="own"))
    server.receive(report_of(first(server), duration=0.0))
    assert first(server).memory == 0


def test_work_that_does_not_remember_names_no_memory():
    server = trains(work=Work())
    server.receive(report_of(first(server)))
    assert first(server).memory is None


def test_a_busy_client_is_refused_work_that_remembers():
    server = Server(Scripted(on_timer=[Train(0, REMEMBERING)]), [1, 1])
    server.start()
    with pytest.raises(StrategyError, match="trains busy client 0 on work that remembers"):
        server.wake(0, 1.0)


@given(steps=st.lists(st.sampled_from(["report", "skip", "drop", "lose", "cancel", "restore"]), max_size=30))
@settings(max_examples=40, deadline=None)
def test_the_memory_is_the_last_merged_ticket_whatever_happens(steps):
    server, accepted = trains(), -1
    for step in steps:
        out = first(server)
        assert out.memory == accepted
        if step == "report":
            server.receive(report_of(out))
            accepted = out.ticket
        elif step == "skip":
            server.skip(out.ticket, 1.0)
            accepted = out.ticket
        elif step == "drop":
            server.receive(report_of(out, duration=0.0))
        elif step == "lose":
            server.lose(out.ticket)
        elif step == "cancel":
            server.wake(0, 0.0)
        else:
            snapshot = json.loads(json.dumps(server.snapshot()))
            server = Server(Trains(), [1])
            server.restore(snapshot)


# ---- skipped tickets -------------------------------------------------------------------------------------------------


def test_a_skipped_ticket_is_settled_and_merges_nothing():
    server = Server(FedAsync(concurrency=2), [1, 1, 1])
    server.start()
    outputs = server.skip(0, 3.0)
    assert [type(output) for output in outputs] == [Dispatch]  # as after a loss
    assert (server.version, server.updates, sorted(server.outstanding), server.waiting) == (0, 0, [1, 2], {})


def test_a_cohort_goes_on_without_a_skipped_ticket_whose_duration_counts():
    server = Server(FedAvg(cohort_size=2), [1, 1])
    server.start()
    assert server.skip(0, 5.0) == []
    (merge, *_) = server.receive(report_of(first(server), duration=2.0))
    assert (merge.tickets, server.delay_spread) == ((1,), 3.0)


@pytest.mark.parametrize(("ticket", "duration"), [(7, 1.0), (0, -1.0), (0, float("nan"))])
def test_a_skip_that_cannot_be_is_refused_and_changes_nothing(ticket, duration):
    server = Server(FedAsync(concurrency=2), [1, 1, 1])
    server.start()
    before = server.snapshot()
    with pytest.raises(ProtocolError, match=f"ticket {ticket} cannot be skipped"):
        server.skip(ticket, duration)
    assert server.snapshot() == before


def test_an_update_dropped_while_its_client_works_with_the_memory_of_it_is_not_taken_back():
    """Its client no longer has the memory before that one."""

    class Late(Trains, tag="drops_one_later"):
        """Drops every report when the next one arrives."""

        def on_update(self, state, update, view):
            old = [Drop(ticket, "late") for ticket in view.waiting if ticket != update.report.ticket]
            return state, [Train(0, REMEMBERING), *old]

    server = Server(Late(), [1])
    server.start()
    server.receive(report_of(first(server)))
    server.receive(report_of(first(server)))  # ticket 0 is dropped while 2 is out
    assert first(server).memory == 1
    server.lose(2)
    assert first(server).memory == 1
