"""A client that stops early stops where its slow twin does, and without patience nothing is other than it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import to_json
from asyncfed.core.types import Budget, Work
from asyncfed.kernels import reference
from asyncfed.kernels.losses import LOSS_CODES, loss_code
from asyncfed.kernels.sgd import LocalSgd
from asyncfed.kernels.tasks import Tasks
from asyncfed.strategies import AFL


def both(loss, key, patience, epochs=40, lr=0.3):
    rng = np.random.default_rng(key)
    x = rng.normal(size=(17, 3))
    y = np.where(rng.random(17) < 0.5, -1.0, 1.0)
    start = np.zeros(4)
    kernel = LocalSgd(x, y, np.array([0, 17]), loss_code(loss), 0.01, True, True)
    tasks = Tasks(
        np.array([0]), np.array([key], np.uint64), np.array([[epochs, 5, lr, 0.0, 0.0, patience]], np.float64)
    )
    how = {"epochs": epochs, "batch": 5, "lr": lr, "l2": 0.01, "loss_code": loss_code(loss), "patience": patience}
    return kernel, start, tasks, reference.train_path(x, y, start, key, **how)


@settings(deadline=None)  # the first call compiles
@given(st.sampled_from(sorted(LOSS_CODES)), st.integers(0, 30), st.integers(0, 5))
def test_the_kernel_stops_where_its_twin_does(loss, key, patience):
    kernel, start, tasks, path = both(loss, key, patience)
    assert kernel.train(start[None], tasks)[0].tobytes() == path[-1].tobytes()
    steps, _, _ = kernel.path_moments(start[None], tasks)
    assert steps[0] == len(path) - 1


def test_it_does_stop_early_and_later_with_more_patience():
    def steps(patience):
        return len(both("logistic", 3, patience)[3]) - 1

    assert steps(1) < steps(4) < steps(0) == 40 * 4


def test_a_column_of_no_patience_changes_nothing():
    kernel, start, tasks, _ = both("hinge", 1, 0)
    without = Tasks(tasks.clients, tasks.keys, np.ascontiguousarray(tasks.work[:, :5]))
    assert kernel.train(start[None], tasks).tobytes() == kernel.train(start[None], without).tobytes()


def test_unset_it_is_not_written_down():
    assert "patience" not in to_json(Work())
    assert '"patience":3' in to_json(Work(patience=3))


def test_a_patient_run_verifies_and_differs(small, tmp_path):
    def experiment(**how):
        work = Work(epochs=60, batch_size=4, learning_rate=0.02, **how)
        return small(strategy=AFL(concurrency=2, work=work), budget=Budget(rounds=4))

    path = tmp_path / "run.sqlite"
    run = af.run(experiment(patience=1), out=path)
    assert run.sha256["params"] != af.run(experiment()).sha256["params"]
    assert af.verify(path).ok
    assert af.from_toml(af.to_toml(run.experiment)) == run.experiment


def test_no_patience_at_all_is_refused():
    with pytest.raises(ConfigError, match=r"work\.patience is 0; it must be at least 1 epoch, or left out"):
        Work(patience=0)
