"""A table of one's own, from the file to the run: command line, Python and TOML."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.data import DataRequest, Holdout, TableFile, table_reader


@pytest.fixture
def shops(tmp_path):
    """Three shops of unequal size; y depends on price and colour."""
    rng = np.random.default_rng(0)
    lines = ["id,shop,price,colour,day,y"]
    for number in range(150):
        shop = rng.choice(["north", "south", "west"], p=[0.5, 0.3, 0.2])
        price, colour = rng.normal(100.0, 20.0), rng.choice(["red", "blue"])
        y = 3.0 + 0.1 * price + 2.0 * (colour == "red") + 0.1 * rng.normal()
        shown = "" if rng.random() < 0.05 else f"{price:.3f}"
        lines.append(f"n{number},{shop},{shown},{colour},2024-01-{number % 28 + 1:02},{y if number else ''}")
    path = tmp_path / "shops.csv"
    path.write_text("\n".join(lines))
    return path


def test_from_the_command_line(cli, shops, tmp_path):
    out = tmp_path / "run.sqlite"
    done = cli("run", "--data", shops, "--target", "y", "--client-column", "shop", "--rounds", 60, "--out", out,
               "--set", "strategy.work.learning_rate=0.05", "--set", 'data.ignore=["id"]')  # fmt: skip
    assert done.code == 0, done.err
    assert "149 rows at 3 clients, 3 features" in done.out
    assert "1 rows without a value of y left out" in done.out
    assert "missing values filled with the mean over all clients: price" in done.out
    run = af.load(out)
    assert run.experiment.prepare_data().clients.names == ("north", "south", "west")
    assert run.header["num_clients"] == 3
    assert run.evaluations["test_loss"][-1] < 0.1 * run.evaluations["test_loss"][0]
    assert af.verify(out).ok


@pytest.fixture
def count_calls(monkeypatch):
    """`count_calls(owner, name)`: a list that grows by one with every call of `owner.name`."""

    def watch(owner, name):
        calls, original = [], getattr(owner, name)

        def counted(*arguments, **options):
            calls.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)
        return calls

    return watch


@pytest.mark.parametrize("rate", [[], ["--lr", "0.05"]])
def test_a_run_command_prepares_its_data_once(cli, shops, tmp_path, count_calls, rate):
    read = count_calls(table_reader, "_read_csv")
    prepared, drawn = count_calls(TableFile, "prepare"), count_calls(Holdout, "roles")
    done = cli("run", "--data", shops, "--target", "y", "--client-column", "shop", "--rounds", 5,
               "--set", 'data.ignore=["id"]', "--out", tmp_path / "run.sqlite", *rate)  # fmt: skip
    assert done.code == 0, done.err
    assert (len(read), len(prepared), len(drawn)) == (1, 1, 1)


def test_a_run_from_python_prepares_its_data_once(shops, count_calls):
    experiment = af.presets.table(str(shops), target="y", client_column="shop", rounds=5)
    prepared, drawn = count_calls(TableFile, "prepare"), count_calls(Holdout, "roles")
    run = af.run(experiment)
    assert run.problem.clients.names == ("north", "south", "west")
    assert (len(prepared), len(drawn)) == (1, 1)


@pytest.mark.slow
def test_a_report_prepares_the_data_of_each_run_once(cli, shops, tmp_path, count_calls):
    experiment = af.presets.table(str(shops), target="y", client_column="shop", rounds=5)
    af.run(experiment, out=tmp_path / "run.sqlite")
    prepared, drawn = count_calls(TableFile, "prepare"), count_calls(Holdout, "roles")
    assert cli("report", tmp_path / "run.sqlite", "--out", tmp_path / "page.html").code == 0
    assert (len(prepared), len(drawn)) == (1, 1)


def test_from_toml_and_back(shops):
    text = f"""
    [data]
    kind = "table_file"
    path = "{shops}"
    target = "y"
    client_column = "shop"
    features = ["price", "colour"]
    [strategy]
    kind = "fedasync"
    concurrency = 2
    """
    experiment = af.from_toml(text)
    assert af.from_toml(af.to_toml(experiment)) == experiment
    assert experiment.count_clients() == 3
    assert experiment.prepare_data().preparation.feature_names == ("price", "colour=red")


def test_without_a_client_column_the_split_assigns_rows(shops):
    experiment = af.presets.table(str(shops), target="y", num_clients=5, settings={"data.ignore": ["id", "shop"]})
    prepared = experiment.prepare_data()
    assert prepared.clients.num_clients == 5
    assert prepared.clients.names == ()
    assert prepared.preparation.feature_names == ("price", "colour=red", "day")


def test_held_out_rows_do_not_shape_the_preparation(shops):
    table = TableFile(path=str(shops), target="y", client_column="shop", features=("price",))
    prepared = table.prepare(DataRequest(holdout=af.data.Holdout(validation=0.2, test=0.3)))
    assert prepared.clients.x[:, 0].mean() == pytest.approx(0.0, abs=1e-9)
    assert prepared.clients.x[:, 0].std() < 1.0  # gaps at the mean, which the spread of what is there leaves out
    assert abs(prepared.held_out["test"].x[:, 0].mean()) > 1e-6


def test_a_split_or_a_number_of_clients_beside_a_client_column_is_refused(shops):
    table = TableFile(path=str(shops), target="y", client_column="shop")
    with pytest.raises(ConfigError, match="names the owner of each row already"):
        table.prepare(DataRequest(split=af.data.InOrder()))
    with pytest.raises(ConfigError, match='num_clients is 5, but the column "shop" names 3 clients'):
        table.prepare(DataRequest(num_clients=5))
