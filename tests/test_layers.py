"""Imports go one way. Every import of every module, also those inside functions, is held against the map below."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "asyncfed"
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
AMBIENT = {"time", "asyncio", "threading", "random", "os"}

ROOMS = {
    "core": {"core"},
    "strategies": {"core"},
    "combine": {"core", "combine", "kernels"},
    "kernels": {"core", "kernels"},
    "problems": {"core", "kernels", "problems"},
    "data": {"core", "data"},
    "delays": {"core", "delays"},
    "store": {"core", "store"},
    "sim": {"core", "combine", "delays", "problems", "store", "sim"},
    "theory": {"core", "problems", "kernels", "theory"},
    "live": {"core", "combine", "problems", "store", "sim", "live"},
    "report": {"core", "store", "report"},
    "certificates": {
        *("core", "data", "problems", "strategies", "sim", "theory", "report", "certificates"),
        *("experiment", "participation", "run", "running"),
    },
    "live.flower": {
        *("core", "data", "kernels", "problems", "store", "live", "live.flower"),
        *("deploying", "experiment", "running", "version"),
    },
    "reproduce": {
        *("core", "data", "delays", "strategies", "sim", "store", "report", "reproduce"),
        *("compare", "experiment", "presets", "run", "running", "version"),
    },
}
"""What of AsyncFed a room may import; a room may always import from itself. Modules of no room are the top layer."""

OUTSIDE = {
    "core": {"msgspec"},
    "strategies": set(),
    "combine": {"numpy"},
    "kernels": {"numpy", "numba", "scipy"},
    "problems": {"numpy", "scipy", "torch", "safetensors"},
    "data": {"numpy", "scipy", "pyarrow", "sklearn", "pandas"},
    "delays": {"numpy", "scipy"},
    "store": {"numpy"},
    "sim": {"numpy"},
    "live": {"numpy"},
    "theory": {"numpy", "scipy"},
    "certificates": {"numpy"},
    "live.flower": {"numpy", "flwr", "cryptography"},
    "report": {
        *("numpy", "scipy", "matplotlib", "rich", "pyarrow", "plotly", "pandas"),
        *("prometheus_client", "tensorboardX", "mlflow"),
    },
    "reproduce": {"numpy"},
}
"""What a room may import from outside the standard library and AsyncFed."""

TOP = {"numpy", "tomli_w", "rich", "typer"}

CONFINED = {
    "numba": ("kernels/",),
    "matplotlib": ("report/",),
    "msgspec": ("core/record.py",),
    "tomli_w": ("experiment.py",),
    "sqlite3": ("store/",),
    "rich": ("cli.py", "cli_flower.py", "report/"),
    "typer": ("cli.py", "cli_flower.py"),
    "pyarrow": ("data/table_files.py", "report/export.py"),
    "sklearn": ("data/built_in.py",),
    "plotly": ("report/page",),
    "pandas": ("data/built_in.py", "report/client_table.py"),
    "prometheus_client": ("report/to_prometheus.py",),
    "tensorboardX": ("report/to_tensorboard.py",),
    "mlflow": ("report/to_mlflow.py",),
    "torch": ("problems/torch_",),
    "safetensors": ("problems/torch_problem.py",),
    "flwr": ("live/flower/",),
    "cryptography": ("live/flower/credentials.py",),
}
"""Each dependency is imported in one place."""

COMMAND_LINE = ("cli.py", "cli_flower.py")

ABOVE_THE_TOP = {"reproduce", "certificates", "live.flower"}
"""Rooms made of whole experiments: they may import the top layer, and only the command line imports them."""

PUBLIC_FROM_ABOVE = {
    "__init__.py": ["asyncfed.certificates.Certificate", "asyncfed.certificates.certify"],
    "run.py": ["asyncfed.certificates.certificate_of"],
}
"""What of the rooms above is handed on: a run gives its own certificate, and imports what makes it only then."""

NOT_AMBIENT = ROOMS.keys() - {"store", "report", "reproduce", "live.flower"}
THREADS_OF_THEIR_OWN = {"kernels/threads.py"}
ENGINES = ("live/local/",)
"""Where live runs meet the world: clocks, processes and sockets are their business."""


@cache
def imports_of(module):
    """Full dotted names, with what `from … import` names appended: `asyncfed.core.types.Work`, `numpy`, `os.path`."""
    tree, names = ast.parse((SOURCE / module).read_text()), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the full name."
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def room_of(name):
    """The room, or for the top layer the module, that a dotted name or a path belongs to."""
    parts = name.removeprefix("asyncfed.").split(".") if name.startswith("asyncfed") else Path(name).parts
    return "live.flower" if tuple(parts[:2]) == ("live", "flower") else parts[0]


def inside(module):
    return [name for name in imports_of(module) if name.split(".")[0] == "asyncfed"]


def outside(module):
    return {name.split(".")[0] for name in imports_of(module)} - {"asyncfed"}


def is_private(part):
    return part.startswith("_") and not part.endswith("__")


def in_rooms(*rooms):
    return [module for module in MODULES if "/" in module and room_of(module) in rooms]


def test_every_room_is_on_the_map():
    assert {room_of(module) for module in MODULES if "/" in module} == set(ROOMS) == set(OUTSIDE)


@pytest.mark.parametrize("module", in_rooms(*ROOMS))
def test_a_room_imports_only_the_rooms_below_it(module):
    room = room_of(module)
    allowed = ROOMS[room] | {room}
    wrong = [name for name in inside(module) if room_of(name) not in allowed]
    assert not wrong, f"{module} imports {wrong}; {room} may import {sorted(allowed)} only."


@pytest.mark.parametrize("module", in_rooms("theory"))
def test_theory_borrows_the_losses_the_objective_and_its_minimiser_and_nothing_else(module):
    """Each formula is written once; the bounds themselves are functions of numbers."""
    borrowed = ("asyncfed.core.errors.", "asyncfed.kernels.losses.", "asyncfed.problems.objective.")
    allowed = (*borrowed, "asyncfed.problems.newton.", "asyncfed.theory.")
    assert not [name for name in inside(module) if not name.startswith(allowed)]
    if module.startswith("theory/bounds/"):
        assert all(name.startswith((borrowed[0], "asyncfed.theory.bounds.")) for name in inside(module))


@pytest.mark.parametrize("module", in_rooms("strategies"))
def test_strategies_share_nothing_but_the_handing_out_and_the_counting(module):
    if module == "strategies/__init__.py":
        return
    siblings = [name for name in inside(module) if room_of(name) == "strategies"]
    shared = ("asyncfed.strategies.dispatching.", "asyncfed.strategies.participation.")
    assert all(name.startswith(shared) for name in siblings), siblings


@pytest.mark.parametrize("module", MODULES)
def test_dependencies_are_those_of_the_room(module):
    allowed = OUTSIDE[room_of(module)] if "/" in module else TOP
    wrong = outside(module) - allowed - sys.stdlib_module_names
    assert not wrong, f"{module} imports {sorted(wrong)}; allowed are {sorted(allowed)}."


@pytest.mark.parametrize("dependency", CONFINED)
def test_a_dependency_is_imported_in_one_place(dependency):
    users = [module for module in MODULES if dependency in outside(module)]
    wrong = [module for module in users if not module.startswith(CONFINED[dependency])]
    assert not wrong, f"{wrong} import {dependency}, which belongs to {CONFINED[dependency]}."


@pytest.mark.parametrize("module", in_rooms(*NOT_AMBIENT))
def test_time_and_chance_are_arguments(module):
    if module in THREADS_OF_THEIR_OWN or module.startswith(ENGINES):
        return
    assert not outside(module) & AMBIENT


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_the_command_line(module):
    assert not [name for name in inside(module) if room_of(name) == "cli"]


@pytest.mark.parametrize("module", [module for module in MODULES if module not in COMMAND_LINE])
def test_only_the_command_line_knows_the_rooms_above_the_top_layer(module):
    above = [name for name in inside(module) if room_of(name) in ABOVE_THE_TOP]
    if room_of(module) not in ABOVE_THE_TOP:
        assert above == PUBLIC_FROM_ABOVE.get(module, [])


@pytest.mark.parametrize("module", in_rooms(*(ROOMS.keys() - ABOVE_THE_TOP)))
def test_rooms_do_not_know_the_top_layer(module):
    """Said again of what the map allows, so that a typing mistake in the map cannot let it through."""
    top = {Path(module).stem for module in MODULES if "/" not in module}
    assert not [name for name in inside(module) if room_of(name) in top - {"__init__"}]


@pytest.mark.parametrize("module", COMMAND_LINE)
def test_the_command_line_uses_public_names_only(module):
    private = [name for name in inside(module) if any(map(is_private, name.split(".")))]
    deep = [name for name in inside(module) if room_of(name) in ("kernels", "sim", "combine")]
    assert not private + deep


@pytest.mark.parametrize("module", in_rooms("core"))
def test_no_file_of_the_core_is_long(module):
    assert len((SOURCE / module).read_text().splitlines()) <= 400
