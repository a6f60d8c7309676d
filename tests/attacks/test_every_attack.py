"""What holds for every attack on a real problem: shards, threads, batches, and the rows it trains on."""

import pickle

import numpy as np
import pytest

import asyncfed as af
from asyncfed.attacks import Backdoor, LabelFlip, Liars, Mimic, SlowPoison, ZeroUpdate, with_liars
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Work
from asyncfed.errors import ConfigError
from asyncfed.problems.protocol import Jobs
from asyncfed.registry import kinds

WORK = Work(epochs=1, batch_size=8, learning_rate=1e-2)
ATTACKS = {kind: made() for kind, made in kinds("attack").items() if made.__module__.startswith("asyncfed.")}
ATTACKS["backdoor"] = Backdoor(features=(0, 3), value=9.0, target=1)


def labelled(num_clients=6):
    experiment = af.presets.svm(rounds=2, num_clients=num_clients)
    return af.replace(experiment, data=af.data.PaperClassification(num_samples=120), split=af.data.IID())


def jobs_for(problem, clients):
    starts = np.random.default_rng(0).normal(size=(len(clients), problem.num_params)).astype(problem.dtype)
    starts[-1] = starts[0]
    keys = [draw_key(purpose_key(0, "train"), c, t) for t, c in enumerate(clients)]
    return Jobs(starts, clients, [WORK] * len(clients), keys)


@pytest.mark.parametrize("kind", ATTACKS)
def test_alone_together_on_threads_in_a_copy_and_in_a_shard_it_sends_the_same_bits(kind):
    problem = af.replace(labelled(), attack=Liars(attack=ATTACKS[kind], clients=(1, 4))).problem()
    jobs = jobs_for(problem, [1, 0, 4, 1])
    sent = problem.local_train_many(jobs)
    assert np.isfinite(sent).all()
    for row in range(4):
        assert np.array_equal(problem.local_train_many(jobs.part(row, row + 1))[0], sent[row])
    assert np.array_equal(problem.local_train_many(jobs, threads=2), sent)
    assert np.array_equal(pickle.loads(pickle.dumps(problem)).local_train_many(jobs), sent)
    for row, client in enumerate(jobs.clients):
        shard = pickle.loads(pickle.dumps(problem.shard(client)))
        assert np.array_equal(shard.train(jobs.starts[row], WORK, jobs.keys[row]), sent[row])
    honest = problem.inner.local_train_many(jobs)
    assert np.array_equal(sent[1], honest[1])
    if kind not in ("slow_poison", "mimic"):
        assert not np.array_equal(sent[0], honest[0])


def test_label_flip_trains_to_the_bits_of_a_client_with_flipped_labels():
    experiment = labelled()
    clients = experiment.clients()
    rows = slice(clients.offsets[1], clients.offsets[2])
    y = clients.y.copy()
    y[rows] = -y[rows]
    flipped = experiment.model.build(af.data.Clients(clients.x, y, clients.offsets, True))
    lying = af.replace(experiment, attack=Liars(attack=LabelFlip(), clients=(1,))).problem()
    jobs = jobs_for(lying, [1, 0])
    assert np.array_equal(lying.local_train_many(jobs), flipped.local_train_many(jobs))


def test_rows_are_needed_by_attacks_on_rows_and_their_absence_is_named():
    class Rowless:
        def __init__(self, problem):
            self.num_clients, self.init = problem.num_clients, problem.init

    with pytest.raises(ConfigError, match="LabelFlip changes rows, and Rowless does not give its rows"):
        with_liars(Rowless(labelled().problem()), Liars(attack=LabelFlip(), clients=(1,)), seed=0)


@pytest.mark.slow
def test_workers_give_rows_too():
    experiment = labelled()
    attack = Liars(attack=LabelFlip(), clients=(1,))
    with af.Workers(experiment.problem(), 2) as pooled:
        lying = with_liars(pooled, attack, experiment.seed, experiment.init)
        jobs = jobs_for(lying, [1, 0, 2])
        assert np.array_equal(
            lying.local_train_many(jobs), with_liars(experiment.problem(), attack, 0).local_train_many(jobs)
        )


def test_knowledge_of_everybody_is_for_simulations():
    problem = af.replace(labelled(), attack=Liars(attack=Mimic(knowledge="all"), clients=(1,))).problem()
    jobs = jobs_for(problem, [1, 0])
    assert np.isfinite(problem.local_train_many(jobs)).all()
    with pytest.raises(ConfigError, match="can be simulated only"):
        problem.shard(1)
    assert problem.shard(0).num_examples == problem.num_examples[0]


def test_zero_updates_send_the_start_back():
    problem = af.replace(labelled(), attack=Liars(attack=ZeroUpdate(), clients=(1,))).problem()
    jobs = jobs_for(problem, [1, 0])
    assert np.array_equal(problem.local_train_many(jobs)[0], jobs.starts[0])


def test_slow_poisons_tickets_are_late_and_just_those_are_lies(tmp_path):
    attack = SlowPoison(attack=ZeroUpdate(), share=0.4, factor=7.0)
    constant = af.delays.Delays(compute=af.delays.Constant(value=2.0))
    experiment = af.replace(labelled(), delays=constant, attack=Liars(attack=attack, clients=(1, 4)))
    model, key = experiment.bind_delays(6), purpose_key(experiment.seed, "train")
    problem, late = experiment.problem(), 0
    for ticket in range(30):
        for client in (1, 2):
            lies = client == 1 and attack.lies(draw_key(key, client, ticket))
            late += lies
            assert model.timing(client, ticket, WORK, 10).compute == (14.0 if lies else 2.0)
            start = np.full(problem.num_params, 0.1)
            sent = problem.local_train(start, client, WORK, draw_key(key, client, ticket))
            assert np.array_equal(sent, start) == lies
    assert 4 <= late <= 20
    af.testing.check_delay(HeldBack(experiment))


class HeldBack:
    """The delays of an experiment with liars, as a description of delays."""

    may_lose = False

    def __init__(self, experiment):
        self.experiment = experiment

    def bind(self, num_clients, seed):
        return af.replace(self.experiment, seed=seed).bind_delays(max(num_clients, 6))

    def __eq__(self, other):
        return self.experiment == other.experiment

    def __hash__(self):
        return hash(self.experiment)


def test_a_backdoor_succeeds_where_liars_boost_it_and_says_how_often():
    experiment = af.replace(labelled(), budget=af.Budget(rounds=20), holdout=af.data.Holdout(test=0.25))
    attack = Backdoor(features=(0,), value=8.0, target=1, boost=3.0)
    lying = af.run(af.replace(experiment, attack=Liars(attack=attack, share=0.5)))
    success = lying.evaluations["backdoor_success"]
    assert success[-1] > 0.9
    assert ((success >= 0) & (success <= 1)).all()
    problem = lying.problem
    held = problem.inner.held_out["test"]
    rows = [row for c in problem.honest for row in range(held.offsets[c], held.offsets[c + 1]) if held.y[row] != 1]
    x = held.x[rows].copy()
    x[:, 0] = 8.0
    margins = x @ lying.params[:-1] + lying.params[-1]
    assert success[-1] == pytest.approx((margins > 0).mean())
