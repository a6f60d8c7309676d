"""A data source and a split of one's own: in TOML, on the command line, resumed, verified and reported."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.data import Assignment, DataSource, Split, Table, prepare_table
from asyncfed.registry import register


@register("data")
class Ramp(Config, tag_field="kind", tag="test_ramp"):
    rows: int = 60
    slope: float = 2.0

    @property
    def names_clients(self):
        return False

    def prepare(self, request):
        x = np.linspace(-1.0, 1.0, self.rows)
        return prepare_table(Table.from_arrays(x[:, None], self.slope * x, labels=False), request)


@register("split")
class RoundRobin(Config, tag_field="kind", tag="test_round_robin"):
    first: int = 0

    @property
    def claimed_skew(self):
        return frozenset()

    def assign(self, table, num_clients, seed):
        return Assignment((np.arange(table.num_rows) + self.first) % num_clients, table, num_clients)


TEXT = """
num_clients = 4
[data]
kind = "test_ramp"
rows = 80
[split]
kind = "test_round_robin"
first = 1
[holdout]
test = 0.2
[strategy]
kind = "fedasync"
concurrency = 2
[budget]
rounds = 10
"""


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(TEXT)
    return path


def test_they_satisfy_the_protocols():
    assert isinstance(Ramp(), DataSource)
    assert isinstance(RoundRobin(), Split)


def test_they_are_read_from_toml_and_written_again():
    experiment = af.from_toml(TEXT)
    assert experiment.data == Ramp(rows=80)
    assert experiment.split == RoundRobin(first=1)
    assert af.from_toml(af.to_toml(experiment)) == experiment
    assert experiment.prepare_data().clients.num_examples.tolist() == [13] * 4
    assert experiment.measure_heterogeneity().matches_claim


@pytest.mark.slow
def test_a_run_with_them_is_resumed_verified_and_reported(cli, toml, tmp_path):
    out = tmp_path / "run.sqlite"
    assert cli("run", toml, "--out", out).code == 0
    run = af.load(out)
    assert run.experiment.data == Ramp(rows=80)
    assert len(run.clients.columns["client"]) == 4
    assert af.resume(out).sha256 == run.sha256
    assert cli("verify", out).code == 0
    page = tmp_path / "page.html"
    assert cli("report", out, "--out", page).code == 0
    assert "test_round_robin" in page.read_text()


def test_a_misspelt_key_or_kind_is_explained():
    with pytest.raises(ConfigError, match=r"\[data\] has no key `row`. Did you mean .rows"):
        af.from_toml(TEXT.replace("rows = 80", "row = 80"))
    with pytest.raises(ConfigError, match="test_round_robin"):
        af.from_toml(TEXT.replace("test_round_robin", "test_round_robbin"))
