"""The description of a live run on one machine: what it refuses before anything is started."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.live.local.client_program import Slowdown
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.runs.live import run_live


def test_a_problem_without_shards_is_refused(three_clients, tmp_path):
    class Whole:
        def __init__(self, problem):
            self._problem = problem

        def __getattr__(self, name):
            if name == "shard":
                raise AttributeError(name)
            return getattr(self._problem, name)

    with pytest.raises(ConfigError, match=r"has no `shard\(client\)`"):
        run_live(three_clients(), problem=Whole(three_clients().problem()), out=tmp_path / "live.sqlite")
    assert not (tmp_path / "live.sqlite").exists()


def test_clients_that_do_not_exist_cannot_be_slowed_down(small):
    with pytest.raises(ConfigError, match="slow names client 9; clients are numbered 0 to 3"):
        LocalEngine(slow=((9, 2.0),)).check(small().problem())


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"slow": ((1, 0.5),)}, "slow says client 1 takes 0.5 times as long; it must be 1 or more"),
        ({"slow": ((1, float("nan")),)}, "must be 1 or more"),
        ({"drain_seconds": -1.0}, "drain_seconds is -1.0; it must be zero or a positive number"),
        ({"restarts": -1}, "restarts is -1"),
    ],
)
def test_settings_that_cannot_be_are_refused(how, complaint):
    with pytest.raises(ConfigError, match=complaint):
        LocalEngine(**how)


def test_only_named_clients_are_slowed_down():
    engine = LocalEngine(slow=((3, 10.0),), task_seconds=0.5)
    assert engine.slowdown(3) == Slowdown(10.0, 0.5)
    assert engine.slowdown(0) == Slowdown(1.0, 0.5)


def test_a_run_begins_with_all_clients():
    assert LocalEngine().absent(7) == ()
