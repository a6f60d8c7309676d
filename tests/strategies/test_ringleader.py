"""Ringleader ASGD: a trace by hand, its limit, the bound of its delays, n steps a round, one point per batch."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError, StrategyError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Dispatch, Drop, Merge, Report, Train, Work
from asyncfed.delays import Delays, Exponential, FunctionDelays
from asyncfed.strategies import Rennala, Ringleader

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


class Table:
    """What the rule keeps, written down from the paper: by client, the version of its point and its batch."""

    def __init__(self, server):
        self.server, self.version, self.rows, self.base, self.client = server, 0, {}, {}, {}
        self.steps, self.held = [], {}
        self.see(server.start())

    def see(self, outputs):
        for output in outputs:
            if isinstance(output, Dispatch):
                self.base[output.ticket], self.client[output.ticket] = output.base_version, output.client
            elif isinstance(output, Merge):
                if dict(output.combiner.settings)["new_table"]:
                    self.rows = {}
                for ticket in output.tickets:
                    point, batch = self.rows.get(self.client[ticket], (None, []))
                    batch = [*batch, ticket] if point == self.base[ticket] else [ticket]
                    self.rows[self.client[ticket]] = (self.base[ticket], batch)
                delays = [self.version - point for point, _ in self.rows.values()]
                self.steps.append((output, dict(self.rows), delays))
                self.version += 1

    def report(self, ticket):
        self.see(self.server.receive(Report(ticket, self.client[ticket], 0.0, 1.0, 1)))

    def ticket_of(self, client):
        return next(t for t, d in self.server.outstanding.items() if d.client == client)


def test_by_hand():
    table = Table(Server(Ringleader(server_lr=3.0), [1, 1, 1]))
    server = table.server
    # Phase 1: clients 0 and 1 are there after three reports; 0 computes again at version 0.
    for client in (0, 1, 0):
        table.report(table.ticket_of(client))
        assert server.outstanding[table.ticket_of(client)].base_version == 0
    assert table.steps == []
    # Client 2 completes the table: the first step is its own, and it alone gets the new model.
    table.report(table.ticket_of(2))
    merge, rows, delays = table.steps[0]
    assert merge.tickets == (0, 1, 2, 3)
    assert merge.weights == (1.0, 1.0, 1.0, 1.0)  # server_lr / n, each client's mean
    assert rows == {0: (0, [0, 3]), 1: (0, [1]), 2: (0, [2])}
    assert [server.outstanding[table.ticket_of(client)].base_version for client in range(3)] == [0, 0, 1]
    # Client 2 again, which has had its step: for the next table, and it goes on at version 1.
    table.report(table.ticket_of(2))
    assert len(table.steps) == 1
    # Client 1: its change joins its batch, the second step.
    ticket = table.ticket_of(1)
    table.report(ticket)
    assert table.steps[1][0].tickets == (ticket,)
    assert table.steps[1][1][1] == (0, [1, ticket])
    # Client 2 once more, still at version 1; then client 0: the third and last step of the round.
    held = table.ticket_of(2)
    assert server.outstanding[held].base_version == 1
    table.report(held)
    assert [server.round, server.version] == [0, 2]
    table.report(table.ticket_of(0))
    assert [server.round, server.version] == [1, 3]
    # Phase 1 of the next round: client 2 is in it already, with two changes computed at version 1.
    table.report(table.ticket_of(0))
    assert server.version == 3
    table.report(table.ticket_of(1))
    merge, rows, delays = table.steps[3]
    assert {c: (point, len(batch)) for c, (point, batch) in rows.items()} == {0: (3, 1), 1: (2, 1), 2: (1, 2)}
    assert sorted(delays) == [0, 1, 2]


def test_the_step_is_the_mean_of_the_batches_means(tiny, events):
    """Full batches leave no noise, so that what a batch holds follows from its point alone."""
    full = af.replace(WORK, batch_size=8)
    experiment = tiny(clients=3, strategy=Ringleader(server_lr=0.5, work=full), budget=Budget(rounds=4))
    delays = FunctionDelays(lambda client, ticket, work: (1.0, 0.4, 2.3)[client]).bind(3, 0)
    run = af.run(experiment, delays=delays)
    problem, client_of, base = experiment.problem(), {}, {}
    models, rows = [problem.init(0)], {}
    for event in events(run):
        if event.kind == "dispatch":
            client_of[event.ticket], base[event.ticket] = event.client, event.version
        elif event.kind == "merge":
            tickets = [event.ticket] if event.ticket is not None else json.loads(event.detail)["tickets"]
            for ticket in tickets:
                rows[client_of[ticket]] = base[ticket]
            x = models[-1].astype(np.float64)
            changes = [
                problem.local_train(models[point], client, full, 0) - models[point] for client, point in rows.items()
            ]
            models.append(x + 0.5 * np.mean(changes, axis=0))
    assert len(models) == 13  # three steps a round
    np.testing.assert_allclose(run.params, models[-1], rtol=1e-10)


@given(seed=st.integers(0, 100_000), clients=st.integers(1, 7), most_changes=st.sampled_from([None, 1, 2, 100]))
@example(seed=11676, clients=4, most_changes=100)  # so slow a client that another sends its hundred and rests
@settings(max_examples=25, deadline=None)
def test_no_change_of_the_table_is_older_than_2n_minus_2_and_each_client_steps_once_a_round(
    seed, clients, most_changes
):
    table = Table(Server(Ringleader(most_changes=most_changes), [1] * clients, seed))
    server, chance = table.server, Stream(purpose_key(seed, "order"))
    speeds = [0.05 + chance.unit() for _ in range(clients)]
    new_models, waiting = [0] * clients, [0] * clients
    for _ in range(150):
        tickets = list(server.outstanding.values())
        assert sorted(d.client for d in tickets) == [c for c in range(clients) if waiting[c] != most_changes]
        dispatch = min(tickets, key=lambda d: chance.unit() / speeds[d.client])
        client, steps = dispatch.client, len(table.steps)
        table.report(dispatch.ticket)
        waiting[client] += 1
        if len(table.steps) > steps:  # the change was merged; a new table has taken all that waited
            new_table = dict(table.steps[-1][0].combiner.settings)["new_table"]
            waiting = [0 if new_table or c == client else count for c, count in enumerate(waiting)]
        if waiting[client] != most_changes:  # else it rests, at the model it has
            latest = server.outstanding[table.ticket_of(client)]
            new_models[client] += latest.base_version != dispatch.base_version
        assert server.round <= min(new_models) + 1
        assert max(new_models) <= server.round + 1  # once a round
    assert server.round == server.version // clients
    for number, (merge, rows, delays) in enumerate(table.steps):
        assert len(rows) == clients
        assert max(delays) <= 2 * clients - 2
        assert dict(merge.combiner.settings)["new_table"] == (number % clients == 0)
        assert merge.ends_round == (number % clients == clients - 1)
        assert sum(len(batch) for _, batch in rows.values()) >= len(merge.tickets)


def test_the_bound_is_reached_and_the_journal_says_so(tiny, events):
    """In turns: client 1 is the first to get a new model, and the last to report in the next round."""
    table = Table(Server(Ringleader(), [1, 1, 1]))
    for client in (0, 2, 1, 0, 2, 1, 0, 2, 0, 1):
        table.report(table.ticket_of(client))
    assert [max(delays) for _, _, delays in table.steps] == [0, 1, 2, 2, 3, 4]
    delays = FunctionDelays(lambda client, ticket, work: (1.0, 0.4, 2.3)[client]).bind(3, 0)
    run = af.run(tiny(clients=3, strategy=Ringleader(work=WORK), budget=Budget(rounds=9)), delays=delays)
    told = [json.loads(event.detail)["info"]["largest_delay"] for event in events(run, "merge")]
    assert len(told) == 27
    assert max(told) <= 4
    ends = [0.0, *[event.time for event in events(run, "merge")][2::3]]
    assert max(np.diff(ends)) <= 2 * 2.3 + 1e-9  # three steps take at most twice the time of the slowest


def test_one_client_is_sgd(tiny):
    experiment = tiny(clients=1, strategy=Ringleader(work=WORK), budget=Budget(updates=12))
    run = af.run(experiment)
    problem, key = experiment.problem(), purpose_key(0, "train")
    x = problem.init(0)
    for ticket in range(12):
        x = x + (problem.local_train(x, 0, WORK, draw_key(key, 0, ticket)) - x)
    np.testing.assert_allclose(run.params, x, rtol=1e-13)


def test_who_leaves_is_no_longer_waited_for():
    table = Table(Server(Ringleader(), [1, 1, 1]))
    server = table.server
    table.report(table.ticket_of(0))
    table.report(table.ticket_of(1))
    table.report(table.ticket_of(0))
    dropped = server.leave(2)  # the one that was missing: client 0, with the latest ticket, makes the first step
    table.see(dropped)
    assert server.version == 1
    assert table.steps[0][0].weights == (0.25, 0.25, 0.25)  # 1/n of the mean
    assert server.outstanding[table.ticket_of(0)].base_version == 1
    assert server.outstanding[table.ticket_of(1)].base_version == 0
    table.report(table.ticket_of(0))  # for the next table
    outputs = server.leave(0)  # its change is dropped; client 1 still has its step
    assert [type(output) for output in outputs] == [Drop]
    table.see(outputs)
    table.report(table.ticket_of(1))
    assert (server.version, server.round) == (2, 1)
    table.see(server.join(5, 1))
    table.report(table.ticket_of(1))
    table.report(table.ticket_of(5))
    assert table.steps[-1][1].keys() == {1, 5}
    assert table.steps[-1][0].weights == (0.25, 0.25)


def test_who_has_sent_enough_rests_until_the_table_is_complete():
    table = Table(Server(Ringleader(most_changes=2), [1, 1, 1]))
    server = table.server
    for client in (0, 0, 1):
        table.report(table.ticket_of(client))
    assert sorted(d.client for d in server.outstanding.values()) == [1, 2]
    table.report(table.ticket_of(2))  # the table is complete; client 0 has to make its step, at the model it had
    assert server.outstanding[table.ticket_of(0)].base_version == 0
    assert server.version == 1
    table.report(table.ticket_of(0))
    assert table.steps[-1][1][0] == (0, [0, 3, table.steps[-1][0].tickets[0]])
    table.report(table.ticket_of(2))
    table.report(table.ticket_of(2))  # it rests, at version 1
    table.see(server.leave(1))  # phase 2 is over; client 0 has no change yet
    table.report(table.ticket_of(0))
    assert server.outstanding[table.ticket_of(2)].base_version == 1
    table.see(server.leave(2))
    table.report(table.ticket_of(0))
    assert table.steps[-1][1].keys() == {0}


@given(seed=st.integers(0, 100_000), clients=st.integers(1, 5))
@settings(max_examples=10, deadline=None)
def test_resting_changes_neither_the_bound_nor_the_steps(seed, clients):
    table = Table(Server(Ringleader(most_changes=1), [1] * clients, seed))
    server, chance = table.server, Stream(purpose_key(seed, "order"))
    for _ in range(80):
        tickets = list(server.outstanding)
        table.report(tickets[chance.below(len(tickets))])
    assert server.round == server.version // clients > 0
    assert all(max(delays) <= 2 * clients - 2 for _, _, delays in table.steps)


def test_who_loses_its_ticket_goes_on_at_the_point_of_its_batch():
    table = Table(Server(Ringleader(), [1, 1]))
    server = table.server
    table.report(table.ticket_of(0))
    table.report(table.ticket_of(1))  # step 1, by client 1
    table.report(table.ticket_of(1))  # for the next table, at version 1
    table.report(table.ticket_of(0))  # step 2
    table.see(server.lose(table.ticket_of(1)))
    assert server.outstanding[table.ticket_of(1)].base_version == 1  # a change computed there is waiting
    table.see(server.lose(table.ticket_of(0)))
    assert server.outstanding[table.ticket_of(0)].base_version == 2


class Forgetful(Rennala, tag_field="kind", tag="forgetful"):
    """It merges the only ticket of version 0 and then trains from it."""

    def on_update(self, state, update, view):
        state, actions = super().on_update(state, update, view)
        return state, [*actions[:1], Train(update.report.client, self.work, self.schedule, 0)]


def test_a_version_that_nobody_holds_cannot_be_trained_from(tiny):
    experiment = tiny(clients=1, strategy=Forgetful(changes_per_step=1, work=WORK))
    with pytest.raises(StrategyError, match="Forgetful trains from version 0, which no ticket holds any more"):
        af.run(experiment)


def test_refusals(tiny):
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is 0; it must be a positive number"):
        Ringleader(server_lr=0)
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule batch_table cannot be used with"):
        Ringleader(work=af.replace(WORK, start="own")).check(3)


def test_threads_interruptions_and_replay(tiny, trusted):
    delays = Delays(compute=Exponential(mean=1.0), dropout=0.05)
    strategy = Ringleader(server_lr=0.5, work=WORK)
    trusted(tiny(clients=5, strategy=strategy, delays=delays, budget=Budget(updates=80), init="torch"))
