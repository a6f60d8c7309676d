"""Runs handed to other people's programs, and read back with their own libraries."""

import socket
import urllib.request

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.report.trackers.scalars import scalars_of, settings_of


@pytest.fixture
def run(small, tmp_path):
    return af.run(small(), out=tmp_path / "run.sqlite")


def test_scalars_are_all_that_was_measured_where_it_was_measured(run):
    scalars = list(scalars_of(run))
    objective = [(s.step, s.value, s.elapsed) for s in scalars if s.name == "evaluation/objective"]
    measured = run.evaluations
    assert objective == list(zip(measured["updates"], measured["objective"], measured["elapsed"], strict=True))
    assert [s.step for s in scalars if s.name == "round/staleness_max"] == [1, 2, 3]


def test_settings_are_dotted_keys_and_how_it_ended(run):
    settings = settings_of(run)
    assert settings["strategy.work.epochs"] == "1"
    assert settings["verdict"] == "finished"


def test_tensorboard_reads_what_was_written(cli, run, tmp_path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    folder = tmp_path / "board"
    assert cli("export", run.path, folder, "--to", "tensorboard").code == 0
    (file,) = folder.iterdir()
    values = {}
    for packed in records_in(file.read_bytes()):
        event = Event.FromString(packed)
        for value in event.summary.value:
            values.setdefault(value.tag, []).append((event.step, value.simple_value))
    assert [step for step, _ in values["evaluation/objective"]] == run.evaluations["updates"].tolist()
    assert values["evaluation/objective"][-1][1] == pytest.approx(run.evaluations["objective"][-1], rel=1e-6)


def records_in(data):
    """TensorBoard's files are records: length (8 bytes), its check sum (4), the bytes, their check sum (4)."""
    place = 0
    while place < len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        yield data[place + 12 : place + 12 + length]
        place += 16 + length


def test_mlflow_reads_what_was_logged(cli, run, tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.tracking import MlflowClient

    assert cli("export", run.path, tmp_path / "mlruns", "--to", "mlflow").code == 0
    client = MlflowClient((tmp_path / "mlruns").as_uri())
    (logged,) = client.search_runs([client.get_experiment_by_name("small").experiment_id])
    assert logged.data.params["strategy.kind"] == "afl"
    history = client.get_metric_history(logged.info.run_id, "evaluation/objective")
    assert [m.value for m in sorted(history, key=lambda m: m.step)] == run.evaluations["objective"].tolist()


def test_mlflow_says_what_is_wrong_with_a_tracker(run):
    pytest.importorskip("mlflow")
    from asyncfed.report.trackers.mlflow_tracker import log_mlflow

    with pytest.raises(ConfigError, match="MLflow"):
        log_mlflow(run, "nowhere://at.all")


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
