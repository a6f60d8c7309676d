"""A small study, computed once."""

import pytest

from asyncfed.robustness.study import plan_study, run_study
from asyncfed.robustness.summary import summarise


@pytest.fixture(scope="session")
def small_plan():
    return plan_study(
        ["regression"], ["sign_flip"], ["median"], [0.1, 0.3], ["iid"], ["stragglers"], seeds=2, quick=True
    )


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("robustness")


@pytest.fixture(scope="session")
def small_study(small_plan, small_folder):
    """Results and their rows, of one defence and its undefended strategy against one attack in one scenario."""
    results = run_study(small_plan, small_folder, 1)
    return results, summarise(results)
