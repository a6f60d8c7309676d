"""Execution: what the server decides is carried out, written down and accounted for."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Report, Work
from asyncfed.engine.execution_setup import set_up
from asyncfed.store.events import Event
from asyncfed.store.journal import Journal
from asyncfed.store.schema import DISPATCH, JOIN, LEAVE, LOST, MERGE, REFUSED, REPORT, STOP
from asyncfed.strategies import AFL

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


@pytest.fixture
def execution(small):
    """Two of four clients at work, before the first report."""

    def make(**how):
        experiment = small(strategy=AFL(concurrency=2, aggregate="mixing", work=WORK))
        plan = replace(experiment.plan(1), **how)
        made = set_up(experiment.problem(), plan, Journal.create(None, {}))
        made.start()
        return made

    return make


def train(execution, ticket, value):
    execution.vectors.trained[ticket] = np.full_like(execution.vectors.params, value)


def report(execution, ticket, value=1.0, duration=1.0, energy=2.0):
    train(execution, ticket, value)
    client = execution.dispatches[ticket].client
    execution.receive(Report(ticket, client, execution.now, duration, 6), energy)


def waiting(execution):
    """Events that wait for the next commit, details as numbers."""
    return [Event(*row) for row in execution.journal.events]


def test_the_start_dispatches_and_measures(execution):
    begun = execution()
    assert [(event.kind, event.ticket, event.version) for event in waiting(begun)] == [
        (DISPATCH, 0, 0),
        (DISPATCH, 1, 0),
    ]
    assert sorted(begun.dispatches) == [0, 1]
    assert begun.ledger.bytes_down == 2 * begun.vectors.params.nbytes
    assert len(begun.journal.evaluations) == 1


def test_a_report_is_written_then_its_merge_then_the_next_ticket(execution):
    begun = execution()
    begun.now = 3.0
    report(begun, 1)
    kinds = [event.kind for event in waiting(begun)[2:]]
    assert kinds == [REPORT, MERGE, DISPATCH]
    arrival, merge, dispatch = waiting(begun)[2:]
    assert (arrival.time, arrival.ticket, arrival.version, arrival.duration, arrival.energy) == (3.0, 1, 0, 1.0, 2.0)
    assert (merge.ticket, merge.version, merge.client) == (1, 1, arrival.client)
    assert (dispatch.ticket, dispatch.version) == (2, 1)
    assert (begun.version, begun.updates, begun.ledger.energy) == (1, 1, 2.0)
    assert sorted(begun.dispatches) == [0, 2]
    assert [event.seq for event in waiting(begun)] == list(range(5))


def test_the_model_is_what_the_merge_says(execution):
    begun = execution()
    before = begun.vectors.params.copy()
    merges = []
    begun.on_merge = merges.append
    report(begun, 0, value=2.0)
    (merge,) = merges
    assert begun.vectors.params == pytest.approx(merge.keep * before + merge.weights[0] * 2.0)


def test_a_loss_is_written_and_its_energy_counted_but_no_merge(execution):
    begun = execution()
    client = begun.dispatches[0].client
    begun.lose(0, 4.0, 1.5, "gone")
    loss, dispatch = waiting(begun)[2:]
    assert (loss.kind, loss.ticket, loss.client, loss.duration, loss.energy) == (LOST, 0, client, 4.0, 1.5)
    assert dispatch.kind == DISPATCH
    assert (begun.ledger.lost, begun.ledger.energy, begun.updates) == (1, 1.5, 0)
    assert 0 not in begun.dispatches


def test_clients_come_and_go(execution):
    begun = execution()
    client = begun.dispatches[1].client
    begun.leave(client, "off")
    begun.join(client, 6)
    kinds = [event.kind for event in waiting(begun)[2:]]
    assert kinds[0] == LEAVE
    assert JOIN in kinds
    assert 1 not in begun.dispatches
    assert begun.ledger.lost == 1


def test_a_refusal_is_written_and_nothing_follows(execution):
    begun = execution()
    before = begun.snapshot()
    begun.refuse(0, 2, True, "too large")
    (refusal,) = waiting(begun)[2:]
    assert (refusal.kind, refusal.ticket, refusal.client, refusal.is_fault) == (REFUSED, 0, 2, True)
    assert begun.snapshot() == before


def test_halting_is_the_end(execution):
    begun = execution()
    begun.halt("enough")
    assert waiting(begun)[-1].kind == STOP
    assert begun.verdict == ("finished", "enough")


@pytest.mark.parametrize(
    ("value", "limit", "diverges"),
    [
        (1e3, 1e2, True),
        (1e3, 1e9, False),
        (1e3, 1e200, False),
        (1e160, 1e200, False),  # its square is infinite, the norm is not
        (1e210, 1e200, True),
        (np.inf, 1e200, True),
        (np.nan, 1e200, True),
        (1e3, np.inf, False),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_divergence_is_judged_by_the_norm_however_large_its_limit(execution, value, limit, diverges):
    begun = execution(divergence_norm=limit)
    for ticket in range(8):
        if begun.server.stopped is None:
            report(begun, ticket, value=value)
    assert begun.diverged is diverges
    assert (begun.verdict[0] == "diverged") is diverges


def test_a_limit_whose_square_is_no_float_is_no_error(small):
    assert af.run(small(divergence_norm=1e200)).verdict == "finished"


def test_a_checkpoint_goes_on_where_it_was(execution, small):
    begun = execution()
    begun.now = 3.0
    report(begun, 1)
    experiment = small(strategy=AFL(concurrency=2, aggregate="mixing", work=WORK))
    checkpoint = begun.snapshot(), begun.vectors.dump()
    again = set_up(experiment.problem(), experiment.plan(1), Journal.create(None, {}), checkpoint)
    assert (again.now, again.version, again.updates) == (3.0, 1, 1)
    assert again.dispatches == begun.dispatches
    assert again.vectors.params.tobytes() == begun.vectors.params.tobytes()
    assert again.snapshot() == begun.snapshot()
