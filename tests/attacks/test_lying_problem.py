"""A problem with liars: trains honestly, lies where it should, is measured on honest clients only."""

import pickle

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import (
    InnerProduct,
    LabelFlip,
    Liars,
    LittleIsEnough,
    LyingProblem,
    Mimic,
    Scaling,
    SignFlip,
    liars_of,
    lying_node,
    with_liars,
    without_liars,
)
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.errors import ConfigError
from asyncfed.problems.protocol import Jobs, MeasuresAtRandom, RebuildsOnRows, ScoresClients, ShardedProblem
from asyncfed.problems.row_losses import MeasuresRows

WORK = Work(epochs=2, batch_size=8, learning_rate=1e-3)
TWO = Liars(attack=SignFlip(scale=3.0), clients=(1, 4))


def regression(**settings):
    return af.replace(af.presets.regression(rounds=4, num_clients=6), **settings)


@pytest.fixture
def honest():
    return regression().problem()


@pytest.fixture
def lying():
    return regression(attack=TWO).problem()


def jobs_for(problem, clients, tickets=None):
    draws = np.random.default_rng(0)
    starts = draws.normal(size=(len(clients), problem.num_params))
    keys = [draw_key(purpose_key(0, "train"), c, t) for t, c in enumerate(clients)]
    return Jobs(starts, clients, [WORK] * len(clients), keys)


def test_liars_turn_their_change_around_and_others_are_trained_as_ever(honest, lying):
    jobs = jobs_for(honest, [0, 1, 2, 4, 1])
    truth, sent = honest.local_train_many(jobs), lying.local_train_many(jobs)
    assert np.array_equal(sent[[0, 2]], truth[[0, 2]])
    for row in (1, 3, 4):
        start = jobs.starts[row]
        assert np.array_equal(sent[row], start + -3.0 * (truth[row] - start))


def test_jobs_are_the_same_alone_together_on_threads_and_with_starts_that_may_be_used_up(lying):
    jobs = jobs_for(lying, [0, 1, 2, 4, 1])
    together = lying.local_train_many(jobs)
    alone = [lying.local_train(*job) for job in zip(jobs.starts, jobs.clients, jobs.works, jobs.keys, strict=True)]
    assert np.array_equal(together, alone)
    assert np.array_equal(lying.local_train_many(jobs, threads=2), together)
    assert np.array_equal(lying.local_train_many(jobs._replace(starts=jobs.starts.copy(), overwrite=True)), together)


def test_steps_and_corrections_are_those_of_honest_training(honest, lying):
    jobs = jobs_for(honest, [0, 1])
    corrected = jobs._replace(corrections=np.full_like(jobs.starts, 0.5), steps_done=np.zeros(2, np.int64))
    truth = honest.local_train_many(corrected)
    expected = corrected.steps_done.copy()
    sent = lying.local_train_many(corrected._replace(steps_done=np.zeros(2, np.int64)))
    assert expected.min() > 0
    assert np.array_equal(sent[1], jobs.starts[1] - 3.0 * (truth[1] - jobs.starts[1]))


def test_what_is_measured_is_of_honest_clients_only(honest, lying):
    params = honest.init(3, how="torch")
    chosen = [0, 2, 3, 5]
    assert lying.evaluate(params)["objective"] == pytest.approx(honest.client_losses(params)[chosen].mean())
    rows = [honest.clients.client(c) for c in chosen]
    alone = af.problems.Linear(af.data.Clients.from_lists([x for x, _ in rows], [y for _, y in rows]))
    assert lying.evaluate(params) == alone.evaluate(params)
    assert np.allclose(lying.optimum(), alone.optimum())
    assert np.array_equal(lying.client_losses(params), honest.client_losses(params))


def test_held_out_rows_of_liars_are_left_out_too():
    experiment = regression(holdout=af.data.Holdout(test=0.3))
    honest, lying = experiment.problem(), af.replace(experiment, attack=TWO).problem()
    params = honest.init(3, how="torch")
    scores = honest.client_scores(params, "test")
    assert lying.evaluate(params)["test_loss"] == pytest.approx(scores.loss[[0, 2, 3, 5]].mean())
    rows = lying.row_losses(params, "test")
    assert np.diff(rows.offsets).tolist() == [n if c not in (1, 4) else 0 for c, n in enumerate(scores.rows)]


def test_it_offers_what_the_problem_offers_and_nothing_else(honest, lying):
    for protocol in (ScoresClients, MeasuresRows, MeasuresAtRandom, ShardedProblem):
        assert isinstance(lying, protocol)
    assert not isinstance(lying, RebuildsOnRows)
    bare = with_liars(Bare(honest), TWO, seed=0)
    for protocol in (ScoresClients, MeasuresRows, MeasuresAtRandom, ShardedProblem):
        assert not isinstance(bare, protocol)
    params = honest.init(3, how="torch")
    measured, truth = bare.evaluate(params), lying.evaluate(params)
    assert measured == pytest.approx({name: truth[name] for name in ("objective", "pooled_loss")})
    assert bare.optimum() is None


class Bare:
    """A problem of the protocol and nothing more."""

    NAMES = (
        *("num_clients", "num_params", "dtype", "num_examples", "init", "local_train", "local_train_many"),
        *("local_path_moments", "evaluate", "client_losses", "client_loss", "gradient", "optimum", "fingerprint"),
    )

    def __init__(self, problem):
        for name in self.NAMES:
            setattr(self, name, getattr(problem, name))


def test_a_copy_for_another_process_lies_the_same(lying):
    copy = pickle.loads(pickle.dumps(lying))
    jobs = jobs_for(lying, [0, 1])
    assert np.array_equal(copy.local_train_many(jobs), lying.local_train_many(jobs))
    assert copy.fingerprint() == lying.fingerprint()


def test_the_fingerprint_covers_the_attack_and_who_lies(honest, lying):
    others = [
        honest,
        regression(attack=Liars(attack=SignFlip(scale=2.0), clients=(1, 4))).problem(),
        regression(attack=Liars(attack=Scaling(factor=3.0), clients=(1, 4))).problem(),
        regression(attack=Liars(attack=SignFlip(scale=3.0), clients=(1, 5))).problem(),
    ]
    assert len({problem.fingerprint() for problem in (lying, *others)}) == 5
    assert regression(attack=TWO).problem().fingerprint() == lying.fingerprint()


def test_liars_join_a_problem_once(honest, lying):
    assert with_liars(lying, TWO, seed=0) is lying
    assert with_liars(honest, Liars(attack=SignFlip(), share=0.0), seed=0) is honest
    assert without_liars(lying) is lying.inner
    assert isinstance(lying, LyingProblem)
    assert liars_of(lying).members == (1, 4)
    assert liars_of(honest) is None
    with pytest.raises(ConfigError, match="liars of its own"):
        with_liars(lying, Liars(attack=SignFlip(), clients=(1,)), seed=0)


@pytest.mark.parametrize("client", [0, 1, 4])
def test_a_shard_lies_to_the_bits_of_the_problem(lying, client):
    jobs = jobs_for(lying, [client])
    shard = pickle.loads(pickle.dumps(lying.shard(client)))
    assert np.array_equal(shard.train(jobs.starts[0], WORK, jobs.keys[0]), lying.local_train_many(jobs)[0])
    assert shard.loss(jobs.starts[0]) == lying.client_loss(jobs.starts[0], client)
    assert shard.num_examples == lying.num_examples[client]


def test_an_attack_that_gives_something_else_than_a_change_is_named(honest):
    class Short(SignFlip, tag="short"):
        def lie(self, view):
            return view.change[:2]

    problem = with_liars(honest, Liars(attack=Short(), clients=(1,)), seed=0)
    with pytest.raises(ConfigError, match=r"Short.lie gave an array of shape \(2,\)"):
        problem.local_train(honest.init(0), 1, WORK, 5)


def test_a_view_cannot_be_written_to(honest):
    class Writes(SignFlip, tag="writes"):
        def lie(self, view):
            view.start[:] = 0.0
            return view.change

    problem = with_liars(honest, Liars(attack=Writes(), clients=(1,)), seed=0)
    with pytest.raises(ValueError, match="read-only"):
        problem.local_train(honest.init(0), 1, WORK, 5)


@pytest.mark.parametrize("attack", [SignFlip(), InnerProduct(), LabelFlip()])
def test_a_node_that_lies_by_itself_does_so_with_its_own_data_alone(honest, attack):
    node = pickle.loads(pickle.dumps(lying_node(honest, 2, attack, 0, "zeros")))
    alone = with_liars(honest, Liars(attack=attack, clients=(2,)), seed=0)
    jobs = jobs_for(honest, [2])
    assert set(node.shards) == {2}
    assert np.array_equal(node.train(jobs.starts[0], WORK, jobs.keys[0]), alone.local_train_many(jobs)[0])


@pytest.mark.parametrize("attack", [LittleIsEnough(), Mimic(knowledge="all")])
def test_a_node_cannot_lie_with_data_of_others(honest, attack):
    with pytest.raises(ConfigError, match="a node has its own alone"):
        lying_node(honest, 2, attack, 0, "zeros")
