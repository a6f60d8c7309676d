"""A small problem, and a small study of it, computed once."""

import pytest

from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.study import plan_study, run_study
from asyncfed.communication.summary import summarise
from asyncfed.core.record import replace
from asyncfed.data import PaperRegression


@pytest.fixture(scope="session", autouse=True)
def small_problem():
    """A regression with 100 weights that takes a tenth of a second, among the study's problems."""
    data = PaperRegression(num_samples=400, num_features=99, low=-1.0, high=1.0, weight_low=-1.0, weight_high=1.0)
    PROBLEMS["small"] = replace(
        PROBLEMS["regression"], name="small", data=data, rates=(0.1, 0.03), remaining=0.2, most_updates=400, seeds=2
    )
    yield PROBLEMS["small"]
    del PROBLEMS["small"]


@pytest.fixture(scope="session")
def small_plan(small_problem):
    return plan_study(["small"], ["top_k", "top_k_ef"], ["fedbuff", "fedavg"], ["1_mbit"], seeds=2)


@pytest.fixture(scope="session")
def small_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("communication")


@pytest.fixture(scope="session")
def small_study(small_plan, small_folder):
    """Results and their rows, of three ways to send and two strategies."""
    results = run_study(small_plan, small_folder, 1)
    return results, summarise(results)
