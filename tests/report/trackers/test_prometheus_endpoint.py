"""What Prometheus reads."""

import socket
import urllib.request

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError


def test_prometheus_reads_how_far_a_live_run_is(small, tmp_path):
    pytest.importorskip("prometheus_client")
    from asyncfed.report.trackers.prometheus_endpoint import metrics_endpoint

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    seen = []
    with metrics_endpoint(port, "small") as tell:

        def watch(now):
            tell(now)
            if not seen and now.updates:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                    seen.append((now.updates, page.read().decode()))

        experiment = small(budget=af.Budget(updates=40))
        af.run_live(experiment, engine=af.LocalEngine(task_seconds=0.02), out=tmp_path / "live.sqlite", watch=watch)
        with pytest.raises(ConfigError, match=f"cannot be offered on port {port}"), metrics_endpoint(port, "again"):
            pass
    updates, page = seen[0]
    assert f'asyncfed_updates{{run="small"}} {updates}.0' in page
    assert 'asyncfed_refused{run="small"} 0.0' in page
