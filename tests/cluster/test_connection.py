"""Connecting: what is refused, and what the error says."""

import re
import sys

import pytest
from tests.cluster.conftest import THIRD, RayNode, free_port

import asyncfed as af
from asyncfed.cluster import connection
from asyncfed.cluster.node_check import make_report
from asyncfed.errors import ConfigError


def test_what_cannot_be_connected_to(monkeypatch):
    with pytest.raises(ConfigError, match=r'address is "somewhere"; it must be HOST:PORT of the head node, or "auto"'):
        af.Cluster("somewhere")
    with pytest.raises(ConfigError, match=r"Nobody answers at 127\.0\.0\.6:\d+ .* `ray start --head"):
        af.Cluster(f"{THIRD}:{free_port(THIRD)}")
    with pytest.raises(ConfigError, match="workers is 0; a cluster needs at least 1"):
        af.Cluster(workers=0)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"needs Ray, which is not installed .* pip install 'asyncfed\[ray\]'"):
        af.Cluster("auto")


def test_nodes_with_other_code_are_named(cluster, address, tmp_path, small):
    """One with another AsyncFed: refused if it is there from the start, left alone if it joins later."""
    (tmp_path / "asyncfed").mkdir()
    (tmp_path / "asyncfed" / "__init__.py").write_text("raise ImportError('another one')\n")
    experiment = small(strategy=af.strategies.AFL(concurrency=3), budget=af.Budget(rounds=5))
    with cluster() as two:
        with pytest.raises(ConfigError, match=r"is connected to the cluster .* already"):
            af.Cluster(f"{THIRD}:1")
        with two.train_for(experiment, experiment.problem(), True) as trained:
            third = RayNode(THIRD, address, environment={"PYTHONPATH": str(tmp_path)}).wait()
            try:
                trained._pool._welcome_nodes()
                assert trained._pool.at_work == {"127.0.0.2": 1, "127.0.0.3": 1}
                assert trained._pool._starting == {}
                wrong = r"node 127\.0\.0\.6: AsyncFed source \w{12} \(here source \w{12}\)"
                [sentence] = [said for said in two.said if "joined" in said]
                assert re.search(wrong, sentence)
                with pytest.raises(ConfigError, match=f"{wrong}.*Install the same versions"):
                    af.Cluster()
            finally:
                third.kill()


def test_a_report_of_a_process_without_asyncfed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert make_report()()["asyncfed"] == "not installed"


def test_ray_is_loaded_once():
    assert connection.load_ray() is sys.modules["ray"]
