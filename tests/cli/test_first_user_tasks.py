"""What somebody tries first, each task in at most two commands, and what is then on the screen."""

import re
import subprocess
import sys

import numpy as np
import pytest

import asyncfed as af

TABLE = ("shops.csv", "--target", "sold", "--client-column", "shop")


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path, monkeypatch):
    """With a table of three shops in it: how much is sold falls with the price, and red sells better."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    rows = ["shop,price,colour,sold"]
    for shop, price in (("north", 20.0), ("south", 25.0), ("west", 40.0)):
        for _ in range(60):
            paid, red = rng.normal(price, 4.0), rng.random() < 0.5
            sold = 90.0 - 2.0 * paid + 10.0 * red + 3.0 * rng.normal()
            rows.append(f"{shop},{paid:.2f},{'red' if red else 'blue'},{sold:.1f}")
    (tmp_path / "shops.csv").write_text("\n".join(rows))


def test_a_first_run(cli):
    """The first command as a process, for this is what a user has."""
    first = command("run", "--rounds", "20")
    assert first.splitlines()[0] == "run file: runs/regression-0.sqlite"
    assert "finished: all 20 rounds are done" in first
    assert "virtual time" in first
    assert objective(cli("show", "runs/regression-0.sqlite").out) == objective(first)


def command(*words):
    done = subprocess.run([sys.executable, "-m", "asyncfed", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def objective(text):
    return re.search(r"objective\W+([\d.]+)", text)[1]


def test_a_table_of_ones_own(cli, tmp_path):
    done = cli("run", *TABLE)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("run file: runs/shops-0.sqlite problem: ridge, because sold is a number")
    for words in (
        "180 rows at 3 clients, 2 features",
        "target: sold",
        "converged",
        "validation loss",
        "test loss",
        "clients, on their test rows",
    ):
        assert words in done.out
    for shop in ("north", "south", "west"):
        assert re.search(rf"^{shop}\W+\d", done.raw, re.MULTILINE)
    assert max(map(len, done.raw.splitlines())) <= 80
    exported = cli("export", "runs/shops-0.sqlite", "clients.csv", "--table", "clients")
    assert exported.out == "wrote clients.csv"
    assert len((tmp_path / "clients.csv").read_text().splitlines()) == 4


def test_strategies_compared_on_ones_own_table(cli, tmp_path):
    done = cli("compare", *TABLE, "--strategies", "scaffold_async,fedavg", "--seeds", 2, "--workers", 1)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"shops: cost of 95 % of the progress \(objective ≤ [\d.,]+\), 2 seeds", done.out)
    for strategy in ("scaffold_async", "fedavg"):
        assert re.search(rf"^{strategy} .*\d", done.raw, re.MULTILINE)
    assert "baseline" in done.out
    assert max(map(len, done.raw.splitlines())) <= 80
    drawn = re.findall(r"figure: (\S+)", done.out)
    assert drawn == [f"runs/compare/{name}.png" for name in ("comparison", "measurements", "time_to_target")]
    assert all((tmp_path / file).read_bytes().startswith(b"\x89PNG") for file in drawn)


def test_a_certificate_for_ones_own_table(cli, tmp_path):
    done = cli("certify", *TABLE, "--seeds", 1)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"Smooth\? yes L = [\d.]+", done.out)
    for words in ("theorem", "covers", "measured: distance", "share of merges"):
        assert words in done.out
    assert (tmp_path / "runs" / "certify" / "shops.png").read_bytes().startswith(b"\x89PNG")


def test_live_clients_with_the_rows_of_ones_own_table(cli):
    """Three processes, each with the rows of one shop; it ends by itself."""
    done = cli("live", *TABLE)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("run file: runs/shops-0-live.sqlite problem: ridge")
    for words in ("180 rows at 3 clients", "converged", "test loss", "3 clients", "clients, on their test rows"):
        assert words in done.out
    assert cli("verify", "runs/shops-0-live.sqlite").out.endswith("verified")
    recorded = af.load("runs/shops-0-live.sqlite")
    assert recorded.header["live"]["engine"]["kind"] == "local"
    assert len(recorded.participation()) == 3
