"""What is held out: of every client its part, of no client everything, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.data.clients import Clients
from asyncfed.data.holdout import TEST, TRAINING, VALIDATION, Holdout, hold_out

FRACTIONS = st.floats(0.01, 0.49)


def clients(sizes):
    rows = sum(sizes)
    offsets = np.cumsum([0, *sizes]).astype(np.int64)
    return Clients(np.arange(float(rows)).reshape(-1, 1), np.arange(float(rows)), offsets, False)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), FRACTIONS, FRACTIONS, st.integers(0, 5))
def test_every_client_gives_its_part_and_keeps_a_row(sizes, validation, test, seed):
    holdout = Holdout(validation=validation, test=test)
    offsets = np.cumsum([0, *sizes])
    roles = holdout.roles(offsets, seed)
    for client, size in enumerate(sizes):
        mine = roles[offsets[client] : offsets[client + 1]]
        assert (mine == TRAINING).sum() >= 1
        assert abs((mine == TEST).sum() - test * size) <= 1
        if size > 4:
            assert abs((mine == VALIDATION).sum() - validation * size) <= 1
    assert (roles == holdout.roles(offsets, seed)).all()


def test_parts_share_no_row_and_lose_none():
    whole = clients([10, 1, 7])
    train, parts = hold_out(whole, Holdout(validation=0.2, test=0.3).roles(whole.offsets, seed=3))
    assert train.num_examples.tolist() == [5, 1, 4]
    assert np.diff(parts["test"].offsets).tolist() == [3, 0, 2]
    everything = np.concatenate([train.y, parts["validation"].y, parts["test"].y])
    assert sorted(everything) == list(range(18))
    assert set(parts["test"].y[:3]) < set(range(10))


def test_another_seed_draws_other_rows():
    whole = clients([50])
    one, other = (hold_out(whole, Holdout().roles(whole.offsets, seed))[0].y for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_bad_fractions_are_refused():
    with pytest.raises(ConfigError, match=r"holdout\.test is 1\.5"):
        Holdout(test=1.5)
    with pytest.raises(ConfigError, match=r"keeps back 1 of all rows"):
        Holdout(validation=0.5, test=0.5)
    with pytest.raises(ConfigError, match=r"Leave \[holdout\] out"):
        Holdout(validation=0, test=0)


def test_held_out_measurements_are_columns_and_agree_with_numpy(small):
    run = af.run(small(holdout=Holdout(validation=0.25, test=0.25)))
    problem = run.experiment.problem()
    test, params = problem.held_out["test"], run.params
    losses = 0.5 * (test.x @ params[:-1] + params[-1] - test.y) ** 2
    by_client = [losses[a:b].mean() for a, b in zip(test.offsets[:-1], test.offsets[1:], strict=True)]
    assert run.evaluations["test_loss"][-1] == pytest.approx(np.mean(by_client))
    assert len(run.evaluations["validation_loss"]) == len(run.evaluations["round"])


def test_labels_are_also_scored_by_accuracy():
    experiment = af.replace(af.presets.svm(rounds=40, strategy="afl_mixing"), holdout=Holdout())
    run = af.run(experiment)
    assert 0.5 < run.evaluations["test_accuracy"][-1] <= 1.0


def test_held_out_rows_are_part_of_what_a_run_is(small, tmp_path):
    path = tmp_path / "run.sqlite"
    af.run(small(holdout=Holdout(test=0.2)), out=path)
    assert af.verify(path).ok
    assert small().problem().fingerprint() != small(holdout=Holdout(test=0.2)).problem().fingerprint()


def test_a_copy_for_another_process_keeps_them(small):
    import pickle

    problem = small(holdout=Holdout()).problem()
    assert pickle.loads(pickle.dumps(problem)).fingerprint() == problem.fingerprint()
