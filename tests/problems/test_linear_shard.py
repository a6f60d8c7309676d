"""A client's part of a linear problem trains to the bits of the whole and holds only its own rows."""

import pickle

import numpy as np

from asyncfed.core.types import Work
from asyncfed.problems.protocol import Jobs


def test_a_shard_trains_to_the_bits_of_the_whole_problem(small):
    problem = small().problem()
    work, start = Work(epochs=2, batch_size=4, learning_rate=0.01), problem.init(0)
    for client in range(problem.num_clients):
        shard = pickle.loads(pickle.dumps(problem.shard(client)))
        assert shard.num_examples == problem.num_examples[client] == len(shard.rows.x)
        assert shard.train(start, work, 5).tobytes() == problem.local_train(start, client, work, 5).tobytes()


def test_with_a_correction_and_so_many_steps_too(small):
    problem = small().problem()
    count = problem.num_clients
    starts, corrections = np.random.default_rng(0).normal(size=(2, count, problem.num_params)).astype(problem.dtype)
    works = [Work(batch_size=4, steps=3 + client, decay=0.5, patience=1 + client) for client in range(count)]
    done = np.zeros(count, np.int64)
    jobs = Jobs(starts, list(range(count)), works, [7] * count, corrections=corrections, steps_done=done)
    whole = problem.local_train_many(jobs, threads=2)
    for client, work in enumerate(works):
        shard, own = pickle.loads(pickle.dumps(problem.shard(client))), np.zeros(1, np.int64)
        assert shard.train(starts[client], work, 7, corrections[client], own).tobytes() == whole[client].tobytes()
        assert own[0] == done[client] <= work.count_steps(shard.num_examples)
        assert shard.train(starts[client], work, 7).tobytes() != whole[client].tobytes()


def test_a_shard_holds_a_copy(small):
    problem = small().problem()
    shard = problem.shard(0)
    assert not np.shares_memory(shard.rows.x, problem.x)
    assert shard.rows.offsets.tolist() == [0, shard.num_examples]
    assert shard.rows.sha256() == problem.shard(0).rows.sha256() != problem.shard(1).rows.sha256()
