"""The commands show, export, report, verify and replay."""

import csv
import ctypes
import re
import sqlite3
import subprocess
import sys

import pytest

import asyncfed as af


def test_verify_replays(cli, done):
    result = cli("verify", done)
    assert result.code == 0
    assert result.out.endswith("evaluations: the same when replayed verified")
    with sqlite3.connect(done) as file:
        file.execute("UPDATE rounds SET energy = 0")
    file.close()
    result = cli("verify", done)
    assert result.code == 1
    assert "rounds: NOT THE SAME when replayed" in result.out
    assert result.out.endswith("NOT verified")


def test_show_tells_what_a_run_came_to(cli, done, tmp_path):
    result = cli("show", done, "--plot", tmp_path / "run.pdf")
    assert result.code == 0
    for words in ("finished", "objective", "Jain's index", "staleness", "energy"):
        assert words in result.out
    assert (tmp_path / "run.pdf").read_bytes().startswith(b"%PDF")


def test_show_prints_the_experiment_as_toml_that_can_be_run_again(cli, done, small):
    assert af.from_toml(cli("show", done, "--toml").raw) == small()


@pytest.mark.parametrize("table", ["evaluations", "rounds", "events"])
def test_export_to_csv(cli, done, tmp_path, table):
    path = tmp_path / "new" / "table.csv"
    assert cli("export", done, path, "--table", table).code == 0
    run = af.load(done)
    columns = {
        "evaluations": run.journal.evaluation_columns(),
        "rounds": run.journal.columns("rounds"),
        "events": run.journal.event_columns(),
    }[table]
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(columns)
    assert len(rows) == len(next(iter(columns.values())))
    assert [row[0] for row in rows] == [str(value) for value in columns[header[0]]]


@pytest.mark.parametrize("table", ["evaluations", "rounds", "events"])
def test_export_to_parquet(cli, done, tmp_path, table):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    assert cli("export", done, path, "--table", table).code == 0
    read = parquet.read_table(path).to_pydict()
    if table == "rounds":
        assert read == af.load(done).journal.columns("rounds")
    assert len(next(iter(read.values()))) > 2


def test_export_knows_two_formats(cli, done, tmp_path):
    result = cli("export", done, tmp_path / "table.xlsx")
    assert result.code == 2
    assert 'ends in ".xlsx"; a table is written as .csv or .parquet' in result.err


def test_show_prints_digests_by_which_two_runs_can_be_compared(cli, small, tmp_path):
    first, same, other = (tmp_path / f"{name}.sqlite" for name in ("first", "same", "other"))
    for path, seed in ((first, 0), (same, 0), (other, 1)):
        af.run(small(seed=seed), out=path).journal.close()

    def digests(path, *options):
        return re.findall(r"(events|model), sha256(?: │|:) (\w+)", cli("show", path, *options).out)

    assert [name for name, _ in digests(first)] == ["events", "model"]
    assert digests(first) == digests(same)
    assert not set(digests(first)) & set(digests(other))
    sha256 = af.load(first).sha256
    full = [("events", sha256["journal"]), ("model", sha256["params"])]
    assert digests(first, "--full-digests") == digests(first) + full
    assert dict(digests(first))["events"] == sha256["journal"][:16]


@pytest.fixture
def read_only(done):
    """The file of a finished run in a folder that nobody may write to."""
    done.chmod(0o444)
    done.parent.chmod(0o555)
    yield done
    done.parent.chmod(0o755)


def obey_permissions():
    """Take from root the right to write where nobody may; other users never had it."""
    drop_from_bounding_set, write_anywhere = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, write_anywhere, 0, 0, 0)


CALL_IN_TURN = """
import sys
from asyncfed.cli.app import main
for words in {commands!r}:
    sys.argv = ["asyncfed", *words]
    try:
        main()
    except SystemExit as ended:
        print(words[0], "ended with", ended.code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="permissions are obeyed by means of Linux")
def test_a_finished_run_in_a_read_only_folder_can_be_read(read_only, tmp_path):
    file, table, page = map(str, (read_only, tmp_path / "table.csv", tmp_path / "page.html"))
    commands = [["show", file, "--clients"], ["verify", file], ["export", file, table], ["report", file, "--out", page]]
    script, before = CALL_IN_TURN.format(commands=commands), read_only.read_bytes()
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=obey_permissions, check=False
    )
    ended = [f"{words[0]} ended with 0" in result.stdout for words in commands]
    assert all(ended), result.stdout + result.stderr
    assert read_only.read_bytes() == before
    assert [path.name for path in read_only.parent.iterdir()] == [read_only.name]


def test_clients_can_be_shown_and_exported(cli, done, tmp_path):
    shown = cli("show", done, "--clients")
    assert "clients, on their training rows" in shown.out
    assert "* worst tenth" in shown.out
    out = tmp_path / "clients.csv"
    assert cli("export", done, out, "--table", "clients").code == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == af.load(done).clients["loss"].tolist()
