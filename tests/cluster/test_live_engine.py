"""The description of a live run on a cluster: what it refuses before anything is started, and how it is written."""

import pytest

from asyncfed.cluster.live_engine import RayEngine
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import from_plain, to_plain
from asyncfed.live.local.client_program import Slowdown
from asyncfed.runs.live import run_live


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ({"clients_per_process": 0}, "clients_per_process is 0; it must be 1 or more"),
        ({"max_shard_bytes": -1}, "max_shard_bytes is -1"),
        ({"restarts": -1}, "restarts is -1"),
        ({"slow": ((1, 0.5),)}, "slow says client 1 takes 0.5 times as long"),
        ({"nodes": ((1, "a"), (1, "b"))}, "nodes names client 1 twice"),
        ({"address": "ray://10.0.0.1:10001"}, "is that of a Ray client server"),
    ],
)
def test_settings_that_cannot_be_are_refused(how, complaint):
    with pytest.raises(ConfigError, match=complaint):
        RayEngine(**how)


def test_clients_that_do_not_exist_have_no_node(small):
    with pytest.raises(ConfigError, match="nodes names client 9; clients are numbered 0 to 3"):
        RayEngine(nodes=((9, "10.0.0.7"),)).check(small().problem())


def test_it_is_read_back_from_a_run_s_header():
    engine = RayEngine(address="10.0.0.1:6379", nodes=((3, "ward"),), clients_per_process=4, slow=((1, 2.0),))
    assert from_plain(to_plain(engine), RayEngine) == engine
    assert engine.slowdown(1) == Slowdown(2.0, 0.0)
    assert engine.absent(7) == ()


def test_nobody_at_the_address(three_clients, tmp_path):
    with pytest.raises(ConfigError, match=r"Nobody answers at 127\.0\.0\.4:9"):
        run_live(three_clients(), engine=RayEngine(address="127.0.0.4:9"), out=tmp_path / "live.sqlite")
