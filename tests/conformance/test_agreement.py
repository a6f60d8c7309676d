"""Every algorithm agrees with an independent implementation of its formulas, over random schedules."""

import ast
from pathlib import Path

import pytest
from tests.conformance.cases import CASES, NO_INDEPENDENT_IMPLEMENTATION, make
from tests.conformance.schedules import compare, draw_world, record, schedule_of

from asyncfed.core.record import to_plain
from asyncfed.strategies import algorithms

ALGORITHMS = algorithms()
FEW, MANY = 1, 50


def agree(name, seed):
    """One schedule of this algorithm in both; the largest difference between any two of their models."""
    case = CASES[name]
    world = draw_world(seed, **case.world)
    strategy = make(name, world, seed)
    recording = record(world, strategy)
    run = schedule_of(recording)
    case.independent(run, to_plain(strategy))
    return compare(recording, run)


def test_every_algorithm_has_an_independent_implementation():
    assert set(CASES) | set(NO_INDEPENDENT_IMPLEMENTATION) == set(ALGORITHMS)
    assert not set(CASES) & set(NO_INDEPENDENT_IMPLEMENTATION)


def test_the_independent_side_imports_nothing_of_asyncfed():
    for path in (Path(__file__).parent / "independent").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [n.name for n in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) or ""
            assert not any(name.startswith("asyncfed") for name in (module, *names)), path


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_an_independent_implementation(name, agreed):
    for seed in range(FEW):
        agreed(agree(name, seed))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_agrees_over_many_random_schedules(name, agreed):
    for seed in range(FEW, FEW + MANY):
        agreed(agree(name, seed))
