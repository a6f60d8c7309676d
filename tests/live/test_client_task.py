"""What a client does with a task."""

import numpy as np
import pytest

from asyncfed.core.record import UNSET, replace
from asyncfed.core.types import Work
from asyncfed.live.client_task import OWN_MODEL, work_on
from asyncfed.live.wire import Result, Task, WireError
from asyncfed.uplinks import ErrorFeedback, TopK
from asyncfed.uplinks.chain import encode_change, init_memory
from asyncfed.uplinks.client_memory import ClientMemory

TASK = Task("session", 7, 3, Work(epochs=2, batch_size=4, learning_rate=0.01), 99, "<f8")


def test_a_task_is_trained_as_the_simulator_trains_it(small):
    problem, params = small().problem(), np.linspace(-1, 1, 11)
    result, sent = work_on(problem.shard(2), TASK, {"model": params}, ClientMemory(), lambda: 0.0)
    assert sent["model"].tobytes() == problem.local_train(params, 2, TASK.work, TASK.key).tobytes()
    assert result == Result("session", 7, 0.0, 8, "<f8")


def test_the_duration_includes_the_pause(small):
    now = [10.0]

    class Shard:
        num_examples = 5

        def train(self, params, work, key):
            now[0] += 2.0
            return params

    def pause(worked):
        assert worked == 2.0
        now[0] += 3.0

    result, _ = work_on(Shard(), TASK, {"model": np.zeros(3)}, ClientMemory(), lambda: now[0], pause)
    assert result.duration == 5.0


# ---- more than a model -----------------------------------------------------------------------------------------------

UPLINKS = (ErrorFeedback(codec=TopK(fraction=0.2)),)
SPARSE = replace(TASK, work=replace(TASK.work, uplink=UPLINKS), memory=-1, uplink_key=5)
PARAMS = np.linspace(-1, 1, 11)


def work(problem, task, memory=None, **more):
    memory = ClientMemory() if memory is None else memory
    return work_on(problem.shard(2), task, {"model": PARAMS, **more}, memory, lambda: 0.0)


def test_a_change_goes_through_the_uplinks_with_the_memory_of_the_ticket_that_the_task_names(small):
    problem, memory = small().problem(), ClientMemory()
    result, sent = work(problem, SPARSE, memory)
    change = problem.local_train(PARAMS, 2, SPARSE.work, SPARSE.key) - PARAMS
    expected, after = encode_change(UPLINKS, init_memory(UPLINKS, 11, PARAMS.dtype), change, 5, PARAMS)
    assert sent.keys() == expected.keys() == {"indices", "values"}
    assert all(np.array_equal(sent[name], expected[name]) for name in sent)
    assert [part.name for part in result.parts] == list(sent)
    assert result.memory == -1
    assert np.array_equal(memory.of_ticket[7]["0/residual"], after["0/residual"])
    again, _ = work(problem, replace(SPARSE, ticket=8, memory=7), memory)
    assert (again.memory, list(memory.of_ticket)) == (7, [7, 8])
    lost, _ = work(problem, replace(SPARSE, ticket=9, memory=6), memory)
    assert (lost.memory, list(memory.of_ticket)) == (-1, [9])


def test_a_correction_is_added_to_the_gradient(small):
    problem, correction = small().problem(), np.linspace(0, 1, 11, dtype=np.float32)
    _, plain = work(problem, TASK)
    _, corrected = work(problem, TASK, correction=correction)
    expected = problem.shard(2).train(PARAMS, TASK.work, TASK.key, correction.astype(np.float64))
    assert corrected["model"].tobytes() == expected.tobytes() != plain["model"].tobytes()


def test_steps_are_counted_where_they_may_be_fewer(small):
    task = replace(TASK, work=replace(TASK.work, epochs=30, learning_rate=0.2, patience=1))
    result, _ = work(small().problem(), task)
    assert 2 <= result.metrics["steps"] < 60
    assert work(small().problem(), TASK)[0].metrics is None


def test_nothing_worth_sending_is_a_result_without_parts(small):
    class Silent(TopK):
        def encode(self, memory, change, key):
            return None, memory

    task = replace(TASK, work=replace(TASK.work, uplink=(Silent(),)), uplink_key=5)
    result, sent = work(small().problem(), task)
    assert (result.parts, result.memory, sent) == ((), UNSET, {})


def test_work_from_the_clients_own_model_needs_no_model_sent(small):
    problem, memory = small().problem(), ClientMemory()
    task = replace(TASK, work=replace(TASK.work, start="own"), memory=-1, parts=())
    shard = problem.shard(2)
    result, sent = work_on(shard, task, {}, memory, lambda: 0.0, first_model=lambda: PARAMS)
    assert (result.memory, result.parts) == (-1, UNSET)
    assert sent["model"].tobytes() == shard.train(PARAMS, task.work, task.key).tobytes()
    assert memory.of_ticket[7][OWN_MODEL] is sent["model"]
    next_result, next_sent = work_on(shard, replace(task, ticket=9, memory=7), {}, memory, lambda: 0.0)
    assert next_result.memory == 7
    assert next_sent["model"].tobytes() == shard.train(sent["model"], task.work, task.key).tobytes()


@pytest.mark.parametrize(
    ("task", "arrays", "words"),
    [
        (TASK, {}, "without its model"),
        (replace(SPARSE, uplink_key=UNSET), {"model": PARAMS}, "uplinks without a key"),
        (replace(TASK, work=replace(TASK.work, start="own"), memory=4), {}, "this client has none"),
    ],
)
def test_a_task_that_lacks_something_is_refused(small, task, arrays, words):
    with pytest.raises(WireError, match=words):
        work_on(small().problem().shard(2), task, arrays, ClientMemory(), lambda: 0.0)
