import pytest

from asyncfed.reproduce import reproduction
from asyncfed.reproduce.reproduction import open_workers


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A small reproduction whose runs are all done: figure 2, tenth of the rounds, two seeds."""
    wanted = reproduction.plan_reproduction(tmp_path_factory.mktemp("finished"), quick=True, only=["2"])
    with open_workers(1) as pool:
        reproduction.simulate_missing(wanted, pool)
    return wanted
