"""Folders of runs, and a dashboard of them without a network."""

import json
import sqlite3
from contextlib import closing, contextmanager

import pytest
from starlette.testclient import TestClient

import asyncfed as af
from asyncfed.dashboard.access import Access
from asyncfed.dashboard.web_app import Dashboard

TOKEN = "a-token-for-tests"
NAMES = ["<script>alert(1)</script>", "Ward 7", "Klinik Süd", "name-three", "name-four", "name-five"]


def small_run(path, strategy="fedbuff", clients=6, rounds=30, dropout=0.1, seed=3):
    experiment = af.presets.regression(strategy=strategy, num_clients=clients, rounds=rounds, seed=seed)
    experiment = af.replace(experiment, delays=af.replace(experiment.delays, dropout=dropout))
    run = af.run(experiment, out=path)
    run.journal.close()
    return run


def write_header(path, **entries):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name, value in entries.items():
            connection.execute("INSERT OR REPLACE INTO header VALUES (?, ?)", (name, json.dumps(value)))


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder with two runs, one of them in a folder of its own; clients of the first have names."""
    folder = tmp_path_factory.mktemp("dashboard") / "runs"
    small_run(folder / "named.sqlite")
    write_header(folder / "named.sqlite", client_names=NAMES)
    small_run(folder / "other" / "plain run.sqlite", strategy="fedasync")
    return folder


@contextmanager
def open_dashboard(folder, token=TOKEN, **settings):
    dashboard = Dashboard(folder, Access(token=TOKEN), **settings)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with TestClient(dashboard.app(), base_url="http://127.0.0.1:8050", headers=headers) as client:
        client.dashboard = dashboard
        yield client


@pytest.fixture(scope="module")
def client(runs):
    with open_dashboard(runs) as client:
        yield client
