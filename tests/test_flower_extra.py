"""What there is of Flower where Flower is not: a clear word, and the app for a beginner."""

import tomllib

import numpy as np
import pytest

import asyncfed as af
import asyncfed.flower as room
from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment, read_toml
from asyncfed.flower.new_app import write_app
from asyncfed.live.checks import Limits


@pytest.fixture
def _no_flower(monkeypatch):
    monkeypatch.setattr(room, "find_spec", lambda name: None)


@pytest.mark.usefixtures("_no_flower")
@pytest.mark.parametrize(
    "attempt",
    [
        lambda folder: room.server_app(Experiment()),
        lambda folder: room.client_app(Experiment()),
        lambda folder: room.federation(folder, 3),
        lambda folder: room.certificates(folder, ("127.0.0.1",)),
        lambda folder: room.node_key(folder / "key"),
    ],
)
def test_without_flower_it_is_said_how_to_get_it(attempt, tmp_path):
    with pytest.raises(ConfigError, match=r"Flower is not installed here.*pip install 'asyncfed\[flower\]'"):
        attempt(tmp_path)


@pytest.mark.usefixtures("_no_flower")
def test_the_command_line_says_so_too(cli, tmp_path):
    done = cli("flower", "up", "--folder", tmp_path / "federation")
    assert done.code == 2
    assert "pip install 'asyncfed[flower]'" in done.err
    assert not (tmp_path / "federation").exists()


# ---- flower new ------------------------------------------------------------------------------------------------------


def test_a_new_app_is_small_and_complete(cli, tmp_path):
    folder = tmp_path / "My first app"
    done = cli("flower", "new", folder, "--nodes", 5)
    assert done.code == 0, done.err
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "app_my_first_app/__init__.py",
        "app_my_first_app/client_app.py",
        "app_my_first_app/data.py",
        "app_my_first_app/server_app.py",
        "experiment.toml",
        "pyproject.toml",
    ]
    assert "$" not in "".join(path.read_text() for path in folder.rglob("*.*") if path.is_file())
    assert read_toml(folder / "experiment.toml").num_clients == 5
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_a_new_app_around_a_module_names_it_in_both_apps(cli, tmp_path):
    folder = tmp_path / "first"
    done = cli("flower", "new", folder, "--torch")
    assert done.code == 0, done.err
    assert sorted(path.name for path in (folder / "app_first").iterdir()) == [
        *("__init__.py", "client_app.py", "data.py", "model.py", "server_app.py"),
    ]
    assert "$" not in "".join(path.read_text() for path in folder.rglob("*.*") if path.is_file())
    for name in ("client_app.py", "server_app.py"):
        assert 'problem="app_first.model:make_problem"' in (folder / "app_first" / name).read_text()
    assert "asyncfed[flower,torch]" in (folder / "pyproject.toml").read_text()
    assert read_toml(folder / "experiment.toml").dtype == "float32"


def test_the_module_of_a_new_app_learns_its_rows(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    write_app(tmp_path / "first", 3, torch=True)
    app, data, model = tmp_path / "first", {}, {}
    exec((app / "app_first" / "data.py").read_text(), data)
    exec((app / "app_first" / "model.py").read_text(), model)
    rows = [data["load_data"](client, {"partition-id": client}) for client in range(3)]
    run = af.run(read_toml(app / "experiment.toml"), problem=model["make_problem"](rows))
    assert run.evaluations["objective"][-1] < run.evaluations["objective"][0] / 3
    x, y = rows[1]
    np.savez(tmp_path / "rows.npz", x=x, y=y)
    read = data["load_data"](0, {"partition-id": 0, "data": str(tmp_path / "rows.npz")})
    assert all(np.array_equal(one, other) for one, other in zip(read, (x, y), strict=True))


def test_the_settings_of_a_new_app_are_the_defaults(tmp_path):
    """What is written there for the reader to see must not drift away from what holds when it is left out."""
    write_app(tmp_path / "app", 3)
    config = tomllib.loads((tmp_path / "app" / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    limits = config.pop("limits")
    default = Limits()
    assert limits == {name: getattr(default, name.replace("-", "_")) for name in limits}


def test_the_data_of_a_new_app_are_made_up_or_read(tmp_path):
    write_app(tmp_path / "app", 3)
    namespace = {}
    exec((tmp_path / "app" / "app_app" / "data.py").read_text(), namespace)
    x, y = namespace["load_data"](2, {"partition-id": 2})
    assert (x.shape, y.shape) == ((140, 10), (140,))
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b,target\n1,2,3\n4,5,6\n")
    x, y = namespace["load_data"](0, {"partition-id": 0, "data": str(rows)})
    assert (x.tolist(), y.tolist()) == ([[1, 2], [4, 5]], [3, 6])


@pytest.mark.parametrize(
    ("nodes", "there", "complaint"),
    [(0, False, "nodes is 0; a federation needs at least 1"), (3, True, "is there already and not empty; nothing was")],
)
def test_what_cannot_be_written_is_refused(cli, tmp_path, nodes, there, complaint):
    folder = tmp_path / "app"
    if there:
        folder.mkdir()
        (folder / "precious").touch()
    done = cli("flower", "new", folder, "--nodes", nodes)
    assert done.code == 2
    assert complaint in done.err
    assert not (folder / "pyproject.toml").exists()
