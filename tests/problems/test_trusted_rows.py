"""Rows of the server's own: which they are, that they reach the rule, and what is refused before a run."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import Liars, SignFlip, with_liars
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.types import Budget, Work
from asyncfed.experiment import Experiment, from_toml, to_toml
from asyncfed.problems import TrustedFile, TrustedRows
from asyncfed.store.schema import REPORT
from asyncfed.strategies import AFLGuard, Zeno

WORK = Work(epochs=2, batch_size=1000, learning_rate=0.05)


def test_rows_are_drawn_by_the_seed_and_none_twice(tiny):
    problem = tiny(clients=4).problem()
    rows = np.column_stack([problem.x, problem.y])
    drawn = [TrustedRows(rows=9).shard(problem, seed).rows for seed in (0, 0, 1)]
    first, again, other = (np.column_stack([r.x, r.y]) for r in drawn)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    places = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in first]
    assert sorted(set(places)) == places
    assert len(places) == 9


def test_all_rows_can_be_drawn_but_no_more_and_none_of_known_liars(tiny):
    problem = tiny(clients=4).problem()
    count = len(problem.y)
    assert np.array_equal(TrustedRows(rows=count).shard(problem, 0).rows.x, problem.x)
    with pytest.raises(ConfigError, match=rf"trusted.rows is {count + 1}, but the honest clients have {count} rows"):
        TrustedRows(rows=count + 1).shard(problem, 0)
    lying = with_liars(problem, Liars(attack=SignFlip(), clients=(0, 2)), seed=0)
    honest = np.concatenate([problem._rows_of(1)[1], problem._rows_of(3)[1]])
    assert np.array_equal(TrustedRows(rows=len(honest)).shard(lying, 0).rows.y, honest)


ALL = [AFLGuard(concurrency=1, distance_factor=1e9), Zeno(concurrency=1, eps=1e9)]
"""Strategies that accept everything; one that drops all that can come does so for ever."""


@pytest.mark.parametrize("strategy", ALL)
def test_the_rule_is_given_their_change(tiny, strategy):
    made = af.replace(strategy, trusted_client="server", refresh=1, work=WORK)
    experiment = tiny(clients=4, strategy=made, budget=Budget(updates=1), init="torch")
    experiment = af.replace(experiment, trusted=TrustedRows(rows=7))
    run, problem = af.run(experiment), experiment.problem()
    x = problem.init(0, how="torch")
    report = next(event for event in run.journal.event_rows() if event.kind == REPORT)
    trained = TrustedRows(rows=7).shard(problem, experiment.seed).train(x, WORK, 0)  # full batches need no draws
    assert report.metrics["trusted_norm"] == pytest.approx(np.linalg.norm(trained - x), rel=1e-12)


def test_threads_interruptions_and_replay(tiny, trusted):
    work = Work(epochs=1, batch_size=4, learning_rate=0.01)
    strategy = Zeno(concurrency=4, trusted_client="server", refresh=3, eps=1e-3, work=work)
    trusted(af.replace(tiny(clients=6, strategy=strategy, budget=Budget(updates=40)), trusted=TrustedRows(rows=20)))


def test_live_on_one_machine(tiny, tmp_path):
    strategy = Zeno(concurrency=2, trusted_client="server", eps=1e9, work=WORK)
    experiment = tiny(clients=3, strategy=strategy, budget=Budget(updates=6))
    experiment = af.replace(experiment, trusted=TrustedRows(rows=20))
    run = af.run_live(experiment, out=tmp_path / "run.sqlite")
    assert run.verdict == "finished"
    assert af.verify(run.path)


def test_without_rows_it_is_refused_before_there_is_a_file(tiny, tmp_path):
    experiment = tiny(clients=4, strategy=AFLGuard(trusted_client="server", concurrency=2))
    for run in (af.run, af.run_live):
        with pytest.raises(ConfigError, match=r"the experiment has none. Set trusted, such as"):
            run(experiment, out=tmp_path / "run.sqlite")
    assert not list(tmp_path.iterdir())


def test_a_problem_that_takes_no_rows_is_refused(tiny):
    class Opaque:
        clients = tiny(clients=2).clients()

    with pytest.raises(ConfigError, match=r"Opaque cannot be trained on rows of the server's own"):
        TrustedRows(rows=2).shard(Opaque(), 0)
    with pytest.raises(ConfigError, match=r"which object does not hold. Name a file"):
        TrustedRows(rows=2).shard(object(), 0)


# ---- files ---------------------------------------------------------------------------------------------------------


def test_a_file_gives_the_rows_that_are_in_it(tiny, tmp_path):
    problem = tiny(clients=4).problem()
    x, y = problem._rows_of(1)
    np.savez(tmp_path / "rows.npz", x=x, y=y)
    names = ",".join([*(f"x{i}" for i in range(x.shape[1])), "y"])
    np.savetxt(tmp_path / "rows.csv", np.column_stack([x, y]), "%.17g", ",", header=names, comments="")
    params = problem.init(0, how="torch")
    for name in ("rows.npz", "rows.csv"):
        shard = TrustedFile(file=str(tmp_path / name)).shard(problem, 0)
        assert shard.train(params, WORK, 3).tobytes() == problem.local_train(params, 1, WORK, 3).tobytes()


def test_files_that_cannot_be_used(tiny, tmp_path):
    problem = tiny(clients=4).problem()
    x, y = problem._rows_of(1)

    def refused(words, name="rows.npz", **settings):
        with pytest.raises(DataError, match=words):
            TrustedFile(file=str(tmp_path / name), **settings).shard(problem, 0)

    refused("rows.npz cannot be read")
    (tmp_path / "rows.npz").write_bytes(b"no zip")
    refused("rows.npz cannot be read")
    (tmp_path / "rows.csv").write_text("a,b\n1,two\n")
    refused("rows.csv cannot be read", "rows.csv")
    np.savez(tmp_path / "rows.npz", x=x[:, 1:], y=y)
    refused("columns of features, with which the model has")
    np.savez(tmp_path / "rows.npz", x=x, y=y[1:])
    refused("they need a row for each")
    np.savez(tmp_path / "rows.npz", x=np.where(x == x[0], np.nan, x), y=y)
    refused("not finite")
    np.savez(tmp_path / "rows.npz", x=x, y=y)
    refused("is not the file that trusted.sha256 names", sha256="0" * 64)
    with pytest.raises(ConfigError, match=r"it must end in .npz or .csv"):
        TrustedFile(file="rows.txt")


def test_toml_knows_them_and_experiments_without_are_written_as_before(tiny):
    assert "trusted" not in to_toml(Experiment())
    for trusted in (TrustedRows(rows=30), TrustedFile(file="rows.npz")):
        experiment = Experiment(trusted=trusted, strategy=AFLGuard(trusted_client="server"))
        assert from_toml(to_toml(experiment)) == experiment


def test_the_server_trains_honestly_on_the_rows_of_a_client_that_lies(tiny):
    strategy = af.replace(ALL[1], trusted_client=2, refresh=1, work=WORK)
    experiment = tiny(clients=4, strategy=strategy, budget=Budget(updates=1), init="torch")
    experiment = af.replace(experiment, attack=Liars(attack=SignFlip(scale=10.0), clients=(2,)))
    run, problem = af.run(experiment), experiment.problem()
    x = problem.init(0, how="torch")
    report = next(event for event in run.journal.event_rows() if event.kind == REPORT)
    honest = np.linalg.norm(problem.inner.local_train(x, 2, WORK, 0) - x)
    assert report.metrics["trusted_norm"] == pytest.approx(honest, rel=1e-12)
