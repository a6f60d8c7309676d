"""Parts of one's own, by --import."""

import subprocess
import sys

import pytest

import asyncfed as af
from asyncfed.cli.imports import import_parts
from asyncfed.core.errors import ConfigError
from asyncfed.strategies import FedAsync

PART = '''
"""A strategy of one's own."""

from asyncfed.registry import register
from asyncfed.strategies import FedAsync


@register("strategy")
class Halved(FedAsync, tag="halved_{name}"):
    """FedAsync by another name."""
'''


@pytest.fixture
def part(tmp_path, monkeypatch):
    """`part(name)`: a file that registers the strategy `halved_NAME`."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)

    def write(name):
        path = tmp_path / f"{name}.py"
        path.write_text(PART.replace("{name}", name))
        return path

    yield write
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_file_brings_in_a_strategy_that_toml_may_name(cli, part, small, toml, tmp_path):
    toml.write_text(af.to_toml(small(strategy=FedAsync(concurrency=2))).replace('"fedasync"', '"halved_by_toml"'))
    assert cli("run", toml, "--out", tmp_path / "no.sqlite").code == 2
    path = tmp_path / "run.sqlite"
    done = cli("--import", part("by_toml"), "run", toml, "--out", path)
    assert (done.code, done.err) == (0, "")
    assert cli("verify", path).code == 0
    assert 'kind = "halved_by_toml"' in cli("show", path, "--toml").raw


def test_a_module_is_imported_by_its_dotted_name(part):
    sys.path.insert(0, str(part("by_name").parent))
    import_parts("by_name")
    assert sys.modules["by_name"].Halved


def test_a_file_may_be_imported_twice(part):
    path = part("twice")
    import_parts(str(path))
    import_parts(str(path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.py", "there is no such file"),
        ("no.such.module", "failed with ModuleNotFoundError"),
        ("json.py", 'another module is called "json" already'),
        ("broken.py", "failed with ZeroDivisionError: division by zero"),
    ],
)
def test_what_cannot_be_imported_is_explained(tmp_path, monkeypatch, name, words):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "json.py").write_text("")
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match=words):
        import_parts(str(tmp_path / name) if name.endswith(".py") else name)


@pytest.mark.slow
def test_worker_processes_know_it_too(part, toml, tmp_path):
    """Two workers, started afresh, are given a strategy that only this command's file defines."""
    words = ["compare", str(toml), "--strategies", "halved_for_workers,sync", "--seeds", "2", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "asyncfed", "--import", part("for_workers"), *words, "--out-dir", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "halved_for_workers" in done.stdout
