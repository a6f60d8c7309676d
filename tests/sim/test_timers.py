"""Timers and cancelled tickets in virtual time: moments, costs, resuming and replay, worked out by hand."""

import json

import pytest

import asyncfed as af
from asyncfed.core.record import Config, Record
from asyncfed.core.types import Budget, Cancel, Merge, Stop, Train, Wake, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.registry import register
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


class Counted(Record):
    wakes: int = 0
    sent: int = 0


class Timed(Config):
    """Gives each client a ticket again and again, sets the timers `timers` at the start, and cancels at each of them.

    `cancel` is which of the tickets that are out, oldest first, is given up when a timer comes; its client gets another
    ticket at once.
    """

    work: Work = WORK
    timers: tuple[float, ...] = ()
    cancel: int | None = None
    repeat: float | None = None
    queue: bool = False
    stop_after: int | None = None

    @property
    def state_type(self):
        return Counted

    def check(self, num_clients):
        pass

    def start(self, view):
        wakes = [Wake(after, number) for number, after in enumerate(self.timers)]
        trains = [Train(client, self.work) for client in range(len(view.clients))]
        return Counted(), [*wakes, *trains, *(trains if self.queue else [])]

    def on_update(self, state, update, view):
        merge = Merge((update.report.ticket,), (0.5,), of="delta", ends_round=True)
        return state, [merge, Train(update.report.client, self.work)]

    def on_lost(self, state, dispatch, view):
        return state, [Train(dispatch.client, self.work)] if dispatch.client in view.clients else []

    def on_join(self, state, client, view):
        return state, [Train(client, self.work)]

    def on_leave(self, state, client, view):
        return state, []

    def on_wake(self, state, number, now, view):
        actions = [] if self.repeat is None else [Wake(self.repeat, number)]
        if self.cancel is not None and len(view.outstanding) > self.cancel:
            dispatch = list(view.outstanding.values())[self.cancel]
            actions += [Cancel(dispatch.ticket, "too slow"), Train(dispatch.client, self.work)]
        if state.wakes + 1 == self.stop_after:
            actions.append(Stop("enough"))
        return Counted(state.wakes + 1), actions


# ---- moments -----------------------------------------------------------------------------------------------------


def test_timers_come_at_their_time_and_after_tickets_of_the_same_moment(tiny, scripted, events):
    run = af.run(
        tiny(clients=2, strategy=Timed(timers=(1.0, 0.25, 1.0)), budget=Budget(updates=3)),
        delays=scripted({0: 1.0, 1: 2.0}),
    )
    seen = [(e.kind, e.time, e.ticket) for e in events(run, "wake", "report")]
    assert seen[:4] == [("wake", 0.25, None), ("report", 1.0, 0), ("wake", 1.0, None), ("wake", 1.0, None)]
    assert [e.a for e in events(run, "wake")] == [1.0, 0.0, 2.0]  # their numbers; at the same moment, in that order


def test_a_timer_of_zero_seconds_comes_at_once_but_after_what_arrives_now(tiny, events):
    run = af.run(tiny(clients=1, strategy=Timed(timers=(0.0,)), budget=Budget(updates=1)))
    assert [(e.kind, e.time) for e in events(run)][:3] == [("dispatch", 0.0), ("wake", 0.0), ("report", 1.0)]


def test_a_run_that_rests_until_a_timer_has_not_starved(tiny, events):
    run = af.run(tiny(clients=2, strategy=Resting(), budget=Budget(updates=3)))
    assert (run.verdict, run.reason) == ("finished", "all 3 updates are merged")
    assert [(e.time, e.client) for e in events(run, "report")] == [(11.0, 0), (22.0, 0), (33.0, 0)]


class Resting(Timed):
    """Client 0 works once after each 10 s of rest."""

    def start(self, view):
        return Counted(), [Wake(10.0)]

    def on_update(self, state, update, view):
        return state, [Merge((update.report.ticket,), (0.5,), ends_round=True), Wake(10.0)]

    def on_wake(self, state, number, now, view):
        return state, [Train(0, self.work)]


def test_timers_after_the_time_budget_do_not_come(tiny, events):
    run = af.run(tiny(clients=1, strategy=Timed(timers=(2.0, 9.0)), budget=Budget(elapsed=5.0)))
    assert [e.time for e in events(run, "wake")] == [2.0]
    assert run.reason == "the time budget of 5 s is spent"


def test_a_timer_may_end_the_run(tiny):
    run = af.run(tiny(clients=1, strategy=Timed(timers=(2.5,), stop_after=1), budget=Budget(updates=99)))
    assert (run.reason, run.evaluations["updates"][-1]) == ("enough", 2)


# ---- what a cancelled ticket costs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "seconds", "joules"),
    [
        (0.25, 0.25, 0.0),  # still downloading
        (0.5, 0.5, 0.0),
        (1.5, 1.5, 10.0),  # 1 s of computing at 10 W
        (2.25, 2.25, 17.5),
        (2.75, 2.75, 20.0),  # uploading: all 2 s are computed
    ],
)
def test_a_cancelled_ticket_costs_its_time_and_energy_up_to_that_moment(tiny, scripted, events, at, seconds, joules):
    delays = scripted.parts(usual=(0.5, 2.0, 0.5), watts=10.0)
    run = af.run(tiny(clients=1, strategy=Timed(timers=(at,), cancel=0), budget=Budget(updates=1)), delays=delays)
    (cancel,) = events(run, "cancel")
    assert (cancel.ticket, cancel.client, cancel.time, cancel.a, cancel.b) == (0, 0, at, seconds, joules)
    assert json.loads(cancel.detail) == "too slow"
    (report,) = events(run, "report")
    assert (report.ticket, report.time, report.a, report.b) == (1, at + 3.0, 3.0, 20.0)  # begun at once
    size = run.params.nbytes
    last = {name: values[-1] for name, values in run.rounds.items()}
    assert (last["energy"], last["bytes_down"], last["bytes_up"]) == (joules + 20.0, 2 * size, size)


def test_a_cancelled_ticket_that_would_have_been_lost_costs_what_was_computed(tiny, scripted, events):
    delays = scripted.parts(usual=(0.5, 2.0, 0.5), watts=10.0, lost={0}, give_up=60.0)
    run = af.run(tiny(clients=1, strategy=Timed(timers=(1.5,), cancel=0), budget=Budget(updates=1)), delays=delays)
    (cancel,) = events(run, "cancel")
    assert (cancel.a, cancel.b) == (1.5, 10.0)
    assert run.rounds["lost"][-1] == 0


def test_a_cancelled_ticket_that_waited_in_a_queue_cost_nothing(tiny, scripted, events):
    """Client 0 has tickets 0 (until 2 s) and 1 (until 4 s); 1 is given up at 1 s, and ticket 2 takes its turn."""
    strategy = Timed(timers=(1.0,), cancel=1, queue=True)
    run = af.run(tiny(clients=1, strategy=strategy, budget=Budget(updates=2)), delays=scripted.parts(usual=(0, 2.0, 0)))
    (cancel,) = events(run, "cancel")
    assert (cancel.ticket, cancel.a, cancel.b) == (1, 0.0, 0.0)
    # The client is still busy with ticket 0, and its place behind that stays taken: it computes one thing at a time.
    reports = [(e.ticket, e.time) for e in events(run, "report")]
    assert reports[0] == (0, 2.0)
    assert reports[1] == (2, 6.0)


def test_a_client_whose_only_ticket_is_cancelled_begins_the_next_at_once(tiny, scripted, events):
    strategy = Timed(timers=(1.0,), cancel=0)
    run = af.run(tiny(clients=1, strategy=strategy, budget=Budget(updates=1)), delays=scripted({0: 100.0, 1: 2.0}))
    assert [(e.ticket, e.time) for e in events(run, "report")] == [(1, 3.0)]


def test_a_ticket_cancelled_while_it_uploads_leaves_the_next_one_alone(tiny, scripted, events):
    """Ticket 0 is computed from 0 to 2 s and uploads for 10; 1 is computed from 2 to 4. At 3 s ticket 0 is given up."""
    strategy = Timed(timers=(3.0,), cancel=0, queue=True)
    delays = scripted.parts({0: (0.0, 2.0, 10.0)}, usual=(0.0, 2.0, 0.0), watts=10.0)
    run = af.run(tiny(clients=1, strategy=strategy, budget=Budget(updates=2)), delays=delays)
    (cancel,) = events(run, "cancel")
    assert (cancel.ticket, cancel.a, cancel.b) == (0, 3.0, 20.0)
    assert [(e.ticket, e.time) for e in events(run, "report")] == [(1, 4.0), (2, 6.0)]


def test_what_was_cancelled_does_not_pile_up(tiny, scripted):
    strategy = Timed(timers=(1.0,), repeat=1.0, cancel=0)
    experiment = tiny(clients=3, strategy=strategy, budget=Budget(elapsed=400.0))
    simulation = Simulation(
        experiment.problem(), scripted.parts(usual=(0.0, 1e6, 0.0)), experiment.plan(1), Journal.create(None, {})
    )
    most = 0
    while not simulation.advance(1):
        most = max(most, len(simulation.checkpoint()[0]["heap"]))
    assert most < 100  # of 400 tickets that were cancelled


# ---- threads, resuming, replay -----------------------------------------------------------------------------------


@register("strategy")
class Restarting(Timed, tag_field="kind", tag="test_restarting"):
    """As `Timed`, registered, so that a run of it can be read back."""


def restarting(tiny, updates=80):
    return tiny(
        clients=5,
        strategy=Restarting(timers=(0.3, 0.7), repeat=0.9, cancel=0),
        delays=Delays(compute=Exponential(mean=1.0), upload=Exponential(mean=0.1), dropout=0.1),
        budget=Budget(updates=updates),
        init="torch",
    )


def test_a_run_with_timers_pending_is_the_same_on_two_threads_interrupted_and_replayed(tiny, trusted):
    run = trusted(restarting(tiny), arrivals=7)
    assert run.verdict == "finished"


def test_the_cost_of_a_cancelled_ticket_is_replayed_from_the_journal(tiny, tmp_path, events):
    path = tmp_path / "run.sqlite"
    run = af.run(restarting(tiny), out=path)
    cancels = events(run, "cancel")
    assert len(cancels) > 10
    assert sum(e.b for e in cancels) > 0
    assert af.verify(path).ok
