"""A small arena, computed once."""

import pytest

from asyncfed.arena.arena import plan_arena, run_arena
from asyncfed.arena.summary import summarise


@pytest.fixture(scope="session")
def small_plan():
    return plan_arena(["quadratic"], ["stragglers"], ["iid"], ["fedasync", "published"], seeds=2, trials=2)


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arena")


@pytest.fixture(scope="session")
def small_arena(small_plan, small_folder):
    """Results and their rows, of the baseline and two strategies in one cell."""
    results = run_arena(small_plan, small_folder, 1)
    return results, summarise(results)
