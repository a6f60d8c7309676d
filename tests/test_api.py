"""The public names: lazily imported, the same for type checkers as at run time, and no module of the same name."""

import ast
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
