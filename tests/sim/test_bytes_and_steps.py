"""Time, energy and bytes of a ticket follow from what its client really did and sent."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Constant, Delays, Device
from asyncfed.engine.evaluation import Evaluation
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import FedAvg, FedBuff
from asyncfed.uplinks import ErrorFeedback, TopK

PARAMS = 101


def experiment(work, delays=None, **changes):
    data = af.data.PaperRegression(num_samples=400, num_features=PARAMS - 1)
    strategy = changes.pop("strategy", FedAvg(cohort_size=4, work=work))
    return af.Experiment(
        num_clients=4,
        data=data,
        strategy=replace(strategy, work=work),
        delays=delays or Delays(compute=Constant(value=2.0)),
        budget=Budget(rounds=5),
        evaluation=Evaluation(every=0),
        **changes,
    )


def reports(run):
    return [e for e in run.journal.event_rows() if KIND_NAMES[e.kind] == "report"]


def test_top_k_sends_a_byte_and_a_value_for_each_entry_and_no_more():
    """Of 101 parameters, 2 entries: 5 low bits of each index, and 5 bits for the rest."""
    plain, sparse = (
        af.run(experiment(Work(**uplink))) for uplink in ({}, {"uplink": (ErrorFeedback(codec=TopK(fraction=0.01)),)})
    )
    updates = 4 * 5
    assert plain.rounds["bytes_up"][-1] == updates * PARAMS * 8
    assert sparse.rounds["bytes_up"][-1] == updates * 2 * (1 + 8)
    assert sparse.rounds["bytes_down"][-1] == plain.rounds["bytes_down"][-1] == updates * PARAMS * 8


def test_on_a_slow_link_the_upload_takes_as_much_less_time():
    delays = Delays(compute=Constant(value=0.0), bandwidth_up=Constant(value=8.0))
    plain, sparse = (af.run(experiment(Work(**uplink), delays)) for uplink in ({}, {"uplink": (TopK(fraction=0.01),)}))
    assert plain.rounds["elapsed"][-1] == pytest.approx(5 * PARAMS)
    assert sparse.rounds["elapsed"][-1] == pytest.approx(5 * 18 / 8)
    assert plain.rounds["bytes_up"][-1] / sparse.rounds["bytes_up"][-1] == pytest.approx(
        plain.rounds["elapsed"][-1] / sparse.rounds["elapsed"][-1]
    )


def test_a_client_that_stops_early_has_worked_only_so_long():
    """Epochs that improve nothing end a training of 50 after a few; its time and energy are those of its steps."""
    delays = Delays(compute=Constant(value=50.0), devices=(Device(name="all", share=1.0, watts=3.0),))
    work = Work(epochs=50, batch_size=25, learning_rate=0.5, patience=2)
    run = af.run(experiment(work, delays, divergence_norm=1e300))
    for event in reports(run):
        steps = event.metrics["steps"]
        assert steps % 4 == 0
        assert 3 * 4 <= steps <= 50 * 4
        assert event.duration == pytest.approx(50.0 * steps / 200)
        assert event.energy == pytest.approx(3.0 * event.duration)
    assert any(event.metrics["steps"] < 200 for event in reports(run))


class OnlyLarge(Config, tag_field="kind", tag="only_large_for_this_test"):
    """Entries above a threshold: how many they are is known only after training."""

    threshold: float = 0.05
    remembers = False

    def init(self, num_params, dtype):
        return {}

    def size(self, num_params, itemsize):
        return None

    def encode(self, memory, change, key):
        indices = np.flatnonzero(np.abs(change) > self.threshold)
        if not indices.size:
            return None, memory
        return {"indices": indices.astype("<u4"), "values": change[indices]}, memory

    def decode(self, message, num_params, dtype):
        change = np.zeros(num_params, dtype)
        change[message["indices"]] = message["values"]
        return change


@pytest.mark.parametrize("strategy", [FedAvg(cohort_size=4), FedBuff(concurrency=3, buffer_size=2)])
def test_a_size_known_only_after_training_counts_too(strategy, tmp_path):
    delays = Delays(compute=Constant(value=1.0), bandwidth_up=Constant(value=24.0))
    described = experiment(Work(uplink=(OnlyLarge(),), learning_rate=0.001), delays, strategy=strategy)
    run = af.run(described, out=tmp_path / "run.sqlite")
    sizes = [event.metrics["bytes"] for event in reports(run)]
    assert len(set(sizes)) > 1
    assert all(size % 12 == 0 for size in sizes)
    for event, size in zip(reports(run), sizes, strict=True):
        assert event.duration == pytest.approx(1.0 + size / 24.0)
    # Reports after the last merge are in the journal, but no round counts them.
    assert run.rounds["bytes_up"][-1] <= sum(sizes)
    assert af.verify(tmp_path / "run.sqlite", experiment=described).ok


ALL_LOSSES = Work(learning_rate=0.001, loss=True, start_loss=True, start_rms=True)


def test_a_client_reports_its_losses_if_it_is_asked_to(tmp_path):
    described = experiment(ALL_LOSSES)
    run = af.run(described, out=tmp_path / "run.sqlite")
    first = [event for event in reports(run) if event.version == 0]
    problem = described.problem()
    for event in first:
        dispatch_key = draw_key(purpose_key(described.seed, "train"), event.client, event.ticket)
        trained = problem.local_train(np.zeros(PARAMS), event.client, described.strategy.work, dispatch_key)
        rows = problem.client_row_losses(np.zeros(PARAMS), event.client)
        assert event.metrics == {
            "loss": problem.client_loss(trained, event.client),
            "start_loss": problem.client_loss(np.zeros(PARAMS), event.client),
            "start_rms": float(np.sqrt(np.mean(rows**2))),
        }
    assert af.verify(tmp_path / "run.sqlite").ok


@pytest.mark.slow
def test_live_clients_report_their_losses_too(tmp_path):
    described = experiment(ALL_LOSSES)
    run = af.run_live(described, out=tmp_path / "live.sqlite")
    assert all(min(event.metrics.values()) > 0 and len(event.metrics) == 3 for event in reports(run))
    assert af.verify(tmp_path / "live.sqlite").ok
