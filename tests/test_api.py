"""The public names: lazily imported, the same for type checkers as at run time, and no module of the same name."""

import ast
import io
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import asyncfed as af

SOURCE = Path(af.__file__)
HEAVY = ("numpy", "scipy", "matplotlib", "numba", "torch", "sklearn", "pandas", "pyarrow", "rich", "msgspec", "sqlite3")


def loaded_after(code):
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def test_importing_asyncfed_loads_nothing_else():
    loaded = loaded_after("import asyncfed")
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("asyncfed")} == {"asyncfed"}


def test_running_an_experiment_draws_nothing():
    loaded = loaded_after("import asyncfed as af; af.run(af.presets.regression(rounds=1))")
    assert not loaded & {"matplotlib", "rich", "torch", "pandas", "asyncfed.report", "asyncfed.certificates"}


def imports_for_type_checkers():
    names = {}
    for node in ast.walk(ast.parse(SOURCE.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("asyncfed"):
            names |= {alias.name: node.module for alias in node.names}
    return names


def test_type_checkers_see_the_names_that_are_there():
    declared = imports_for_type_checkers()
    assert sorted(declared) == sorted(af.__all__)
    for name, module in declared.items():
        found = import_module(f"asyncfed.{name}") if module == "asyncfed" else getattr(import_module(module), name)
        assert getattr(af, name) is found, name


def test_public_names_are_listed():
    assert set(af.__all__) <= set(dir(af))
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = af.rum


def test_no_public_function_or_class_has_a_modules_name():
    """`asyncfed.compare` must not be a function for one reader and a module for another."""
    modules = {path.stem for path in SOURCE.parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    elsewhere = {name for name, module in imports_for_type_checkers().items() if module != "asyncfed"}
    assert not elsewhere & modules


@pytest.mark.parametrize("table", ["evaluations", "rounds", "events", "clients"])
def test_tables_of_a_run_as_data_frames(small, table):
    pandas = pytest.importorskip("pandas")
    run = af.run(small())
    frame = run.to_frame(table)
    assert isinstance(frame, pandas.DataFrame)
    assert (
        len(frame)
        == {
            "evaluations": len(run.evaluations["round"]),
            "rounds": 3,
            "events": len(list(run.journal.event_rows())),
            "clients": 4,
        }[table]
    )


def test_a_table_that_does_not_exist_is_refused(small):
    with pytest.raises(af.errors.ConfigError, match='no table "losses"; a run has evaluations, rounds'):
        af.run(small()).to_frame("losses")


class Unregistered(af.Config, tag_field="kind", tag="unregistered"):
    """FedAsync without a name: no file can bring it back."""

    concurrency: int = 2
    work: af.Work = af.Work(batch_size=4)

    @property
    def inner(self):
        return af.strategies.FedAsync(concurrency=self.concurrency, work=self.work)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_a_run_keeps_an_experiment_that_no_file_can_bring_back(small, tmp_path):
    experiment = small(strategy=Unregistered())
    run = af.run(experiment, out=tmp_path / "run.sqlite")
    assert run.experiment is experiment
    assert len(run.clients) == 4
    assert run.certificate().name == "small"
    assert run.bias().share.sum() == pytest.approx(1.0)
    run.journal.close()
    with pytest.raises(af.errors.JournalError, match="unregistered"):
        _ = af.load(run.path).experiment
    assert af.load(run.path, experiment=experiment).experiment is experiment
    assert af.verify(run.path, experiment=experiment).ok


def test_what_the_functions_return_is_a_run(small, tmp_path):
    path = tmp_path / "run.sqlite"
    runs = [af.run(small(), out=path), af.load(path), af.resume(path)]
    runs += af.what_if(path, {"same": small().strategy}).values()
    assert {type(run) for run in runs} == {af.Run}
    assert len({tuple(run.sha256.values()) for run in runs[:3]}) == 1


def test_a_run_can_be_drawn(small):
    from matplotlib.figure import Figure

    figure = af.run(small()).plot()
    assert isinstance(figure, Figure)
    assert figure.axes


def test_parts_can_be_registered_before_anything_else_is_used():
    code = """
import asyncfed as af

@af.register("strategy")
class Mine(af.Config, tag_field="kind", tag="mine"):
    pass
"""
    loaded_after(code)


class Terminal(io.StringIO):
    """Standard error, as it is when somebody watches."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("how", "shown"), [({}, True), ({"progress": False}, False), ({"watch": len}, False)])
def test_a_run_on_a_terminal_shows_how_far_it_is(small, monkeypatch, how, shown):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    af.run(small(), **how)
    assert ("virtual time" in sys.stderr.getvalue()) == shown


def test_in_a_pipe_there_is_no_bar(small, capsys):
    af.run(small())
    assert capsys.readouterr() == ("", "")
