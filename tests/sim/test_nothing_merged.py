"""A strategy that drops everything: the run ends, and says so."""

import pytest

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.engine import plan as plans
from asyncfed.engine.plan import Plan, most_drops
from asyncfed.engine.stopping import Stopping
from asyncfed.strategies import AFL, AFLGuard

STRICT = AFLGuard(concurrency=3, distance_factor=1e-9, work=Work(epochs=1, batch_size=4, learning_rate=0.01))


@pytest.fixture
def soon(monkeypatch):
    """Fifty drops in a row are enough."""
    monkeypatch.setattr(plans, "MOST_DROPS", 50)
    monkeypatch.setattr(plans, "MOST_DROPS_A_CLIENT", 10)


def test_a_run_whose_updates_are_all_dropped_has_starved(small, soon, events, tmp_path):
    run = af.run(small(strategy=STRICT, budget=Budget(rounds=3)), out=tmp_path / "run.sqlite")
    assert run.verdict == "starved"
    assert run.reason.startswith("starved: the last 50 updates in a row were dropped and none was merged")
    assert "loosen what it accepts" in run.advice
    assert len(events(run, "report")) == 50
    assert af.verify(tmp_path / "run.sqlite").ok


def test_stopped_and_resumed_it_ends_at_the_same_update(small, soon, run_in_pieces, tmp_path):
    experiment = small(strategy=STRICT, budget=Budget(updates=10))
    whole = af.run(experiment)
    pieces = run_in_pieces(experiment, tmp_path / "run.sqlite", arrivals=7)
    assert pieces.verdict == "starved"
    assert pieces.sha256 == whole.sha256


def test_a_merge_in_between_begins_the_count_anew(small, soon, events):
    """What is stale is dropped, here three of four, and the run goes on to its end."""
    strategy = AFL(concurrency=4, max_staleness=0, when_stale="drop", work=Work(batch_size=4, learning_rate=0.01))
    run = af.run(small(strategy=strategy, budget=Budget(updates=60)))
    assert run.verdict == "finished"
    assert len(events(run, "drop")) > 50


def test_a_run_that_time_ends_is_left_alone(small, soon):
    run = af.run(small(strategy=STRICT, budget=Budget(elapsed=100.0)))
    assert run.verdict == "finished"
    assert "time budget" in run.reason


@pytest.mark.parametrize(
    ("clients", "how", "most"),
    [
        (10, {}, 10_000),
        (1000, {}, 100_000),
        (10, {"budget": Budget(elapsed=1.0)}, float("inf")),
        (10, {"stopping": Stopping(energy=1.0)}, float("inf")),
        (10, {"stopping": Stopping(patience=3)}, 10_000),
    ],
)
def test_how_many_it_takes(clients, how, most):
    assert most_drops(clients, Plan(strategy=STRICT, **how)) == most
