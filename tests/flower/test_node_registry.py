"""Which nodes may take part. What the driver does with a refusal is tested with the driver."""

import numpy as np
import pytest

from asyncfed.flower.held_out import HeldOutProblem
from asyncfed.flower.messages import Introduction
from asyncfed.flower.node_registry import NodeRegistry


def load_test():
    return np.eye(10), np.ones(10)


def introduction(client=1, num_examples=16, num_params=11, dtype="<f8"):
    return Introduction(client, num_examples, num_params, dtype, "1.0")


def test_generated_data_are_known_to_the_server(experiment):
    registry = NodeRegistry(experiment, None, None)
    assert registry.check(introduction()) is None
    assert "it has 15 examples; client 1 has 16" in registry.check(introduction(num_examples=15))
    assert registry.problem().fingerprint() == experiment.problem().fingerprint()
    assert [registry.min_nodes(wanted, 0) for wanted in (1, 2, 9)] == [1, 2, 3]


def test_sizes_of_the_nodes_own_data_are_what_each_says_first(experiment):
    registry = NodeRegistry(experiment, load_test, None)
    for client, num_examples in enumerate((5, 6, 7)):
        assert registry.check(introduction(client, num_examples)) is None
    assert "it has 8 examples; client 2 has 7" in registry.check(introduction(2, 8))
    problem = registry.problem()
    assert isinstance(problem, HeldOutProblem)
    assert problem.num_examples.tolist() == [5, 6, 7]
    assert registry.min_nodes(1, 0) == 3  # all, for the weights need all sizes
    assert [registry.min_nodes(1, late) for late in (1, 2, 9)] == [2, 1, 1]


def test_a_continued_run_has_the_sizes_of_its_header(experiment):
    registry = NodeRegistry(experiment, load_test, {"live": {"examples": [5, 6, 7]}})
    assert "it has 9 examples; client 0 has 5" in registry.check(introduction(0, 9))
    assert registry.problem().num_examples.tolist() == [5, 6, 7]


def test_a_client_that_was_not_there_at_the_start_says_its_size_when_it_comes(experiment):
    registry = NodeRegistry(experiment, load_test, {"live": {"examples": [5, 0, 7]}})
    assert registry.check(introduction(1, 9)) is None
    assert "it has 8 examples; client 1 has 9" in registry.check(introduction(1, 8))
    assert registry.min_nodes(1, 1) == 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"client": 3}, "its partition-id is 3; the experiment has clients 0 to 2"),
        ({"client": -1}, "its partition-id is -1"),
        ({"num_params": 12}, "its model has 12 params of '<f8'; the server's has 11 of '<f8'"),
        ({"dtype": "<f4"}, "its model has 11 params of '<f4'"),
        ({"num_examples": 0}, "it has 0 examples"),
        ({"num_examples": 2**63 - 1}, "a node may have 1 to 1099511627776"),  # a sum of these is negative
    ],
)
def test_what_does_not_fit_is_refused_and_not_recorded(experiment, wrong, words):
    registry = NodeRegistry(experiment, load_test, None)
    assert words in registry.check(introduction(**wrong))
    assert registry.examples == {}
