"""What MLflow reads."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError


@pytest.fixture
def run(small, tmp_path):
    return af.run(small(), out=tmp_path / "run.sqlite")


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
