"""A run for MLflow, logged with its own client, `mlflow-skinny`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.errors import ConfigError
from asyncfed.report.trackers.scalars import scalars_of, settings_of

MOST_AT_ONCE = 500
LONGEST_TEXT = 500


def log_mlflow(run: ReportedRun, where: str) -> str:
    """Log settings and measurements as a new run of the MLflow experiment of the same name; returns its id.

    `where` is a tracking URI (`http://...`, `sqlite:///...`) or a folder. MLflow takes a folder only where
    MLFLOW_ALLOW_FILE_STORE is set; that is done here, and has to be done for `mlflow ui` too.
    """
    try:
        from mlflow.entities import Metric, Param
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise ConfigError('MLflow needs its client: pip install "asyncfed[mlflow]".') from error
    if "://" not in where:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        where = Path(where).absolute().as_uri()
    try:
        client = MlflowClient(where)
        name = str(run.header["experiment"]["name"])
        known = client.get_experiment_by_name(name)
        logged = client.create_run(known.experiment_id if known else client.create_experiment(name), run_name=name)
        run_id = str(logged.info.run_id)
        settings = [Param(key, value[:LONGEST_TEXT]) for key, value in settings_of(run).items()]
        for some in _batches(settings, 100):
            client.log_batch(run_id, params=some)
        metrics = [Metric(s.name, s.value, round(1000 * s.elapsed), s.step) for s in scalars_of(run)]
        for some in _batches(metrics, MOST_AT_ONCE):
            client.log_batch(run_id, metrics=some)
        client.set_terminated(run_id, "FINISHED" if run.verdict == "finished" else "FAILED")
    except MlflowException as error:
        raise ConfigError(f"MLflow at {where} refused the run: {error}") from error
    return run_id


def _batches(items: Sequence[Any], most: int) -> Iterator[list[Any]]:
    """MLflow takes only so many at once."""
    left = iter(items)
    while piece := list(islice(left, most)):
        yield piece
