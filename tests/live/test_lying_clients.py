"""Live runs with processes that lie: they replay to the same model."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import InnerProduct, LabelFlip, Liars, SignFlip, SlowPoison
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.store.schema import REPORT


def three_of_four_honest(small, attack, **how):
    return small(attack=Liars(attack=attack, clients=(1, 2) if attack.knows == "coalition" else (1,)), **how)


@pytest.mark.parametrize("attack", [SignFlip(scale=10.0), InnerProduct(), LabelFlip()])
def test_a_live_run_with_lying_processes_replays_to_the_same_model(small, tmp_path, attack):
    path = tmp_path / "run.sqlite"
    experiment = three_of_four_honest(small, attack)
    run = af.run_live(experiment, out=path)
    assert run.verdict == "finished"
    lying = run.problem
    assert set(lying.coalition.members) <= {1, 2}
    assert np.isfinite(run.params).all()
    run.journal.close()
    assert af.verify(path).ok


def test_slow_poison_is_held_back_live_too(small, tmp_path):
    attack, path = SlowPoison(attack=SignFlip(), share=0.5, factor=4.0), tmp_path / "run.sqlite"
    experiment = small(attack=Liars(attack=attack, clients=(1,)), budget=af.Budget(updates=24))
    run = af.run_live(experiment, out=path, engine=af.LocalEngine(task_seconds=0.04))
    key = purpose_key(experiment.seed, "train")
    reports = [event for event in run.journal.event_rows() if event.kind == REPORT]
    held = [event.client == 1 and attack.lies(draw_key(key, 1, event.ticket)) for event in reports]
    assert any(held)
    assert all((event.duration >= 0.16) >= late for event, late in zip(reports, held, strict=True))
    run.journal.close()
    assert af.verify(path).ok
