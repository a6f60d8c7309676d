"""FedCompass: a trace by hand, its limit FedAvg, that groups arrive together, and that a run of it can be trusted."""

from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Dispatch, Merge, Report, Wake, Work
from asyncfed.delays import Constant, Delays, Exponential, Uniform
from asyncfed.engine.plan import Churn
from asyncfed.rules import Vectors
from asyncfed.strategies import FedAvg, FedCompass
from asyncfed.strategies.discounts import Polynomial

WORK = Work(batch_size=8, learning_rate=0.01)


class Clock:
    """A server and one parameter in virtual time: client c takes `speeds[c]` seconds a step, and adds `moves[c]`."""

    def __init__(self, strategy, speeds, moves=None):
        self.server = Server(strategy, [1] * len(speeds))
        self.vectors = Vectors(np.zeros(1))
        self.speeds, self.moves = speeds, moves or [0.0] * len(speeds)
        self.now, self.heap, self.sent, self.merges = 0.0, [], {}, []
        self.carry_out(self.server.start())

    def step(self):
        """The next arrival or timer; arrivals first. Says what it was."""
        self.now, kind, number = heappop(self.heap)
        if kind == "timer":
            self.carry_out(self.server.wake(number, self.now))
            return f"timer {number}"
        dispatch = self.server.outstanding[number]
        client = dispatch.client
        self.vectors.trained[number] = self.vectors.starts[number] + self.moves[client]
        report = Report(number, client, self.now, self.now - self.sent[number], 1)
        self.carry_out(self.server.receive(report))
        return f"client {client}"

    def carry_out(self, outputs):
        for output in outputs:
            if isinstance(output, Dispatch):
                self.sent[output.ticket] = self.now
                self.vectors.dispatch(output)
                due = self.now + output.work.steps * self.speeds[output.client]
                heappush(self.heap, (due, "arrival", output.ticket))
            elif isinstance(output, Wake):
                heappush(self.heap, (self.now + output.after, "timer", output.number))
            elif isinstance(output, Merge):
                self.merges.append(output)
                self.vectors.merge(output)

    @property
    def seen(self):
        """(seconds, model, {client: steps of its ticket})."""
        out = self.server.outstanding.values()
        return self.now, self.vectors.params.item(), {d.client: d.work.steps for d in out}

    @property
    def groups(self):
        return {g.number: (g.expected, g.latest, g.out) for g in self.server._state.groups}


def test_two_speeds_by_hand():
    """Client 0 takes 1 s a step and moves by 8, client 1 takes 3 s and moves by 12; from 2 to 4 steps, p = 1/2."""
    run = Clock(FedCompass(min_steps=2, max_steps=4, discount=Polynomial(power=1.0)), [1.0, 3.0], [8.0, 12.0])
    assert run.seen == (0.0, 0.0, {0: 4, 1: 4})
    assert run.groups == {1: (None, None, (0, 1))}
    assert run.step() == "client 0"  # the first arrival: 4 s were expected, 1.5 * 4 is the latest
    assert run.groups == {1: (4.0, 6.0, (1,))}
    assert run.seen == (4.0, 0.0, {1: 4})  # it waits for its group
    assert run.step() == "timer 1"  # merged without client 1: 0 + 8/2; nothing is open, so 4 steps in a new group
    assert run.seen == (6.0, 4.0, {1: 4, 0: 4})
    assert run.groups == {2: (10.0, 12.0, (0,))}
    assert run.step() == "client 0"  # all of group 2: 4 + 8/2
    assert run.seen == (10.0, 8.0, {1: 4, 0: 4})
    assert run.groups == {3: (14.0, 16.0, (0,))}
    # Client 1 is late: its update waits, and it gets model 8 at once. It cannot make 2 steps until 14. Group 3 is over
    # by 16, and client 0 could make 4 more steps by 20: (20 - 12)/3 are 2 steps, so 18 is expected and 21 the latest.
    assert run.step() == "client 1"
    assert run.seen == (12.0, 8.0, {0: 4, 1: 2})
    assert run.groups == {3: (14.0, 16.0, (0,)), 4: (18.0, 21.0, (1,))}
    assert run.step() == "timer 2"  # of a group that is merged: nothing
    assert run.step() == "client 0"  # with the late update, 2 versions old: 8 + 12/2/3 + 8/2; (18 - 14)/1 are 4 steps
    assert run.seen == (14.0, 14.0, {1: 2, 0: 4})
    assert run.merges[-1].weights == (1 / 6, 1 / 2)
    assert run.groups == {4: (18.0, 21.0, (1, 0))}
    assert run.step() == "timer 3"
    assert [run.step(), run.step()] == ["client 1", "client 0"]  # together, at 18 s
    assert run.seen == (18.0, 14.0 + 12 / 2 / 2 + 8 / 2, {0: 4, 1: 3})  # client 1's began one version before
    # The fastest is placed first; for client 1, (22 - 18)/3 is 1 step, too few, and (24 + 4 - 18)/3 are 3.
    assert run.groups == {5: (22.0, 24.0, (0,)), 6: (27.0, 31.5, (1,))}


def test_the_speed_is_mostly_that_of_the_last_ticket():
    run = Clock(FedCompass(min_steps=1, max_steps=10, speed_momentum=0.9), [1.0])
    run.step()
    run.speeds[0] = 2.0
    run.heap.clear()
    (ticket,) = run.server.outstanding
    heappush(run.heap, (run.now + 20.0, "arrival", ticket))
    run.step()
    assert run.server._state.speeds == [pytest.approx(0.1 * 1.0 + 0.9 * 2.0)]


@pytest.mark.parametrize("weighting", ["samples", "equal"])
def test_with_equal_and_constant_speeds_it_is_fedavg(tiny, events, weighting):
    how = {"clients": 5, "budget": Budget(rounds=12), "delays": Delays(compute=Constant(value=0.7)), "init": "torch"}
    compass = FedCompass(min_steps=2, max_steps=10, weighting=weighting, work=WORK)
    fedavg = FedAvg(cohort_size=5, weighting=weighting, work=replace(WORK, steps=10))
    one, other = (af.run(tiny(strategy=strategy, **how)) for strategy in (compass, fedavg))
    assert {e.detail for e in events(one, "dispatch")} == {e.detail for e in events(other, "dispatch")}  # all 10 steps
    assert one.rounds["staleness_max"].tolist() == [0] * 12
    assert one.rounds["elapsed"].tolist() == pytest.approx(other.rounds["elapsed"].tolist(), rel=1e-12)
    np.testing.assert_allclose(one.params, other.params, rtol=0, atol=1e-12)
    objective = [run.evaluations["objective"] for run in (one, other)]
    np.testing.assert_allclose(*objective, rtol=1e-10)


@given(
    speeds=st.lists(st.floats(0.01, 3.0), min_size=1, max_size=8),
    limits=st.tuples(st.integers(1, 20), st.integers(0, 80)),
)
@settings(max_examples=60, deadline=None)
def test_inside_a_group_all_arrive_within_one_step_of_the_expected_time(speeds, limits):
    fewest, most = limits[0], limits[0] + limits[1]
    run = Clock(FedCompass(min_steps=fewest, max_steps=most), speeds)
    for _ in range(150):
        before = set(run.server.outstanding)
        run.step()
        for ticket, dispatch in run.server.outstanding.items():
            assert fewest <= dispatch.work.steps <= most
            group = next((g for g in run.server._state.groups if dispatch.client in g.out), None)
            if ticket in before or group is None or group.expected is None:
                continue
            arrives = run.now + dispatch.work.steps * speeds[dispatch.client]
            rounding = 1e-5 * speeds[dispatch.client]
            assert -rounding <= group.expected - arrives <= speeds[dispatch.client] + rounding
    assert run.server.version > 0


def test_constant_speeds_settle_into_groups_that_arrive_together():
    """Speeds from 1 to 4: once all are known, nobody is late, and every merge is of a whole group."""
    run = Clock(FedCompass(), [1.0, 1.3, 2.0, 2.7, 4.0])
    for _ in range(100):
        run.step()
    sizes = []
    for _ in range(200):
        merged = len(run.merges)
        what = run.step()
        if len(run.merges) > merged:
            assert what.startswith("client")  # the last of its group, not a timer
            sizes.append(len(run.merges[-1].tickets))
        assert run.server._state.general == ()
    assert np.mean(sizes) > 2


def test_a_lost_ticket_frees_its_group_and_its_client_is_placed_anew():
    run = Clock(FedCompass(min_steps=2, max_steps=4), [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    run.step(), run.step()
    assert run.groups == {1: (4.0, 6.0, (2,))}
    ticket = max(t for t, d in run.server.outstanding.items() if d.client == 2)
    run.heap = [entry for entry in run.heap if entry[1:] != ("arrival", ticket)]
    run.carry_out(run.server.lose(ticket))
    assert not run.merges
    assert run.step() == "timer 0"  # the time is known: the group is merged, and all three are placed
    assert len(run.merges) == 1
    assert run.seen == (4.0, pytest.approx(2 / 3), {0: 4, 1: 4, 2: 4})
    assert run.groups == {2: (8.0, 10.0, (0, 1))}  # the speed of client 2 is not known


def test_who_joins_makes_most_steps_outside_of_any_group_and_its_first_update_waits():
    run = Clock(FedCompass(min_steps=2, max_steps=4), [1.0, 1.0], [4.0, 4.0])
    run.carry_out(run.server.leave(1))
    run.heap = [entry for entry in run.heap if entry[1] == "timer" or entry[2] in run.server.outstanding]
    while run.now < 4.0:
        run.step()
    assert run.groups == {2: (8.0, 10.0, (0,))}
    run.now = 5.0
    run.carry_out(run.server.join(1, 1))
    run.step()
    assert run.seen[2] == {0: 4, 1: 4}
    assert run.groups == {2: (8.0, 10.0, (0,))}
    while run.now < 9.0:
        run.step()
    assert [held.client for held in run.server._state.general] == [1]
    assert run.groups == {3: (12.0, 14.0, (0, 1))}  # (12 - 9)/1 are 3 steps
    while run.now < 12.0 or run.server._state.general:
        run.step()
    assert len(run.merges[-1].tickets) == 3


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"min_steps": 0}, "strategy.min_steps is 0; it must be at least 1"),
        ({"max_steps": 10}, "strategy.max_steps is 10, less than min_steps, 20"),
        ({"latest_factor": 0.5}, "strategy.latest_factor is 0.5; it must be at least 1"),
        ({"speed_momentum": 0.0}, "strategy.speed_momentum is 0.0; it must be above 0"),
        ({"server_lr": -1.0}, "strategy.server_lr is -1.0; it must be a positive number"),
    ],
)
def test_settings_out_of_range_are_refused(settings_, words):
    with pytest.raises(ConfigError, match=words):
        FedCompass(**settings_)


def test_threads_interruptions_and_replay(tiny, trusted, events):
    churn = (Churn(time=3.0, client=0, event="leave"), Churn(time=9.0, client=0, event="join"))
    experiment = tiny(
        clients=7,
        strategy=FedCompass(min_steps=2, max_steps=10, work=replace(WORK, batch_size=2)),
        delays=Delays(compute=Exponential(mean=0.5), slowness=Uniform(low=1.0, high=5.0), dropout=0.05),
        churn=churn,
        budget=Budget(updates=150),
        init="torch",
    )
    run = trusted(experiment)
    assert len(events(run, "wake")) > 10
    assert run.rounds["staleness_max"].max() > 0
