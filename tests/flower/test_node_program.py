"""What a node does with a task, and what it needs for it."""

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict

import asyncfed as af
from asyncfed.attacks import SignFlip
from asyncfed.core.errors import ConfigError, DataError
from asyncfed.core.types import Work
from asyncfed.flower.messages import pack_message, unpack_introduction, unpack_message
from asyncfed.flower.node_app import NodeError
from asyncfed.flower.node_program import build_problem, find_named, load_problem, make_client_app, read_client
from asyncfed.live.client_task import work_on
from asyncfed.live.wire import Result, Task, WireError
from asyncfed.problems.linear import LinearModel
from asyncfed.uplinks.client_memory import ClientMemory

TASK = Task(session="secret", ticket=7, base_version=3, work=Work(epochs=2), key=99, dtype="<f8")


def ask(app, kind, content, **node):
    message = Message(content, 5, kind)
    message.metadata.__dict__["_message_id"] = "question"
    return app(message, Context(1, 5, node, RecordDict(), {}))


def test_a_node_trains_to_the_last_bit_as_the_simulator_does(experiment):
    params = np.linspace(-1, 1, 11)
    reply = ask(make_client_app(experiment), "train", pack_message(TASK, {"model": params}), **{"partition-id": 2})
    result, arrays = unpack_message(reply.content, Result, 1000)
    assert np.array_equal(arrays["model"], experiment.problem().local_train(params, 2, TASK.work, TASK.key))
    assert (result.session, result.ticket, result.num_examples, result.metrics) == ("secret", 7, 16, None)
    assert result.duration > 0


def test_a_node_holds_its_own_rows_and_no_others(experiment):
    own = load_problem(experiment, 1, {}, None)
    x, y = experiment.clients().client(1)
    assert np.array_equal(own.shard.rows.x, x)
    assert own.shard.rows.x.base is None  # a copy, not a window on everybody's
    assert own.shard.num_examples == len(y) == 16


def test_data_of_the_nodes_own_are_loaded_there(experiment):
    asked = []

    def load(client, node):
        asked.append((client, node["data"]))
        return [[1.0] * 10, [2.0] * 10], [3.0, 4.0]

    reply = ask(make_client_app(experiment, load), "query", RecordDict(), **{"partition-id": 1, "data": "rows.csv"})
    who = unpack_introduction(reply.content)
    assert (who.client, who.num_examples, who.num_params, who.dtype) == (1, 2, 11, "<f8")
    assert asked == [(1, "rows.csv")]


def test_labels_are_known_from_the_loss_also_where_a_node_has_one_kind_only(experiment):
    svm = af.core.record.replace(experiment, model=LinearModel(loss="hinge"))
    assert build_problem(svm, [[1.0], [2.0]], [1, 1]).num_examples.tolist() == [2]


@pytest.mark.parametrize("number", [{}, {"partition-id": "one"}, {"partition-id": -1}, {"partition-id": True}])
def test_a_node_without_a_number_says_what_it_needs(experiment, number):
    with pytest.raises(ConfigError, match=r"partition-id is .*; it must be 0, 1, … .*--node-config"):
        read_client(number)


def test_a_number_that_nobody_has_is_refused(experiment):
    with pytest.raises((ConfigError, DataError), match="no client 9"):
        load_problem(experiment, 9, {}, None)


def test_a_task_that_is_none_is_refused(experiment):
    shard = load_problem(experiment, 0, {}, None).shard
    result, sent = work_on(shard, TASK, {"model": np.zeros(11)}, ClientMemory(), lambda: 0.0)
    with pytest.raises(NodeError, match=r"^WireError$") as failure:
        ask(make_client_app(experiment), "train", pack_message(result, sent), **{"partition-id": 0})
    assert isinstance(failure.value.__cause__, WireError)
    assert "the message is a Result; a Task is due" in str(failure.value.__cause__)


def test_data_and_problem_may_be_named():
    assert find_named("asyncfed.flower.node_program:find_named") is find_named
    assert find_named(None) is None
    for wrong in ("asyncfed.flower", "asyncfed.flower:nothing", "no_such_app.data:load", ":load"):
        with pytest.raises(ConfigError, match=r"cannot be found.*Write MODULE:NAME, such as 'app_first"):
            find_named(wrong)


SECRET = "row 7 of /home/ann/patients.csv holds 61.5"


@pytest.mark.parametrize(
    ("kind", "content"), [("query", RecordDict()), ("train", pack_message(TASK, {"model": np.zeros(11)}))]
)
def test_of_an_exception_in_its_own_code_a_node_sends_the_class_alone(experiment, kind, content):
    """Flower sends the class and the text of what the app raises; the cause stays in the node's log."""

    def load(client, node):
        raise ValueError(SECRET)

    with pytest.raises(NodeError) as failure:
        ask(make_client_app(experiment, load), kind, content, **{"partition-id": 1})
    assert str(failure.value) == "ValueError"
    assert str(failure.value.__cause__) == SECRET


@pytest.mark.parametrize("load", [None, lambda client, node: (np.eye(6, 10), np.arange(6.0))])
def test_a_node_with_an_attack_lies(experiment, load):
    params = np.zeros(load_problem(experiment, 2, {}, load).num_params)

    def answer(**how):
        app = make_client_app(experiment, load, **how)
        reply = ask(app, "train", pack_message(TASK, {"model": params}), **{"partition-id": 2})
        return unpack_message(reply.content, Result, 2**20)[1]["model"]

    honest, lie = answer(), answer(attack=SignFlip(scale=10.0))
    assert np.abs(honest).max() > 0
    assert np.array_equal(lie, -10.0 * honest)
