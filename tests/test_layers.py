"""Imports go one way. Every import of every module, also those inside functions, is checked against the map below.

Imports under `TYPE_CHECKING` are excepted: they are not there when the program runs.
"""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "asyncfed"
MODULES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
AMBIENT = {"time", "asyncio", "threading", "random", "os"}

BOTTOM = {"core", "registry", "version"}
"""What every room but `core` and `kernels` may import."""

ROOMS = {
    "core": set(),
    "registry": {"core"},
    "version": set(),
    "errors": {"core"},
    "kernels": {"core"},
    "uplinks": {*BOTTOM, "kernels"},
    "rules": {*BOTTOM, "kernels", "uplinks"},
    "strategies": {*BOTTOM, "rules"},
    "privacy": {*BOTTOM, "strategies", "rules", "uplinks"},
    "problems": {*BOTTOM, "kernels"},
    "data": {*BOTTOM, "kernels"},
    "delays": {*BOTTOM, "store"},
    "store": {*BOTTOM},
    "theory": {"core", "problems", "kernels"},
    "engine": {*BOTTOM, "kernels", "rules", "uplinks", "problems", "store"},
    "sim": {*BOTTOM, "kernels", "delays", "uplinks", "problems", "store", "engine"},
    "live": {*BOTTOM, "kernels", "uplinks", "problems", "store", "engine"},
    "attacks": {*BOTTOM, "kernels", "problems", "delays"},
    "experiment": {*BOTTOM, "strategies", "rules", "privacy", "problems", "data", "delays", "engine", "attacks"},
    "presets": {
        *BOTTOM,
        *("strategies", "rules", "uplinks", "problems", "data", "delays", "engine", "theory", "experiment"),
    },
    "runs": {*BOTTOM, "privacy", "problems", "delays", "store", "engine", "sim", "live", "attacks", "experiment"},
    "analysis": {
        *BOTTOM,
        *("strategies", "rules", "kernels", "uplinks", "problems", "data", "delays", "store", "theory"),
        *("engine", "attacks", "experiment", "runs"),
    },
    "certificates": {
        *BOTTOM,
        *("strategies", "rules", "problems", "data", "theory", "engine", "experiment", "runs", "analysis"),
    },
    "advice": {
        *BOTTOM,
        *("strategies", "problems", "delays", "store", "engine", "experiment", "presets", "runs", "analysis"),
    },
    "arena": {
        *BOTTOM,
        *("strategies", "problems", "data", "delays", "store", "engine", "sim", "experiment", "presets", "runs"),
        "analysis",
    },
    "robustness": {
        *BOTTOM,
        *("attacks", "strategies", "rules", "problems", "data", "delays", "store", "engine", "experiment", "presets"),
        *("runs", "analysis"),
    },
    "privacy_audit": {
        *BOTTOM,
        *("kernels", "strategies", "privacy", "problems", "store", "engine", "sim", "experiment"),
    },
    "communication": {
        *BOTTOM,
        *("strategies", "uplinks", "problems", "data", "delays", "engine", "experiment", "runs", "analysis"),
    },
    "report": {
        *BOTTOM,
        "privacy",
        *("strategies", "store", "analysis", "certificates", "advice", "arena", "robustness", "privacy_audit"),
        "communication",
    },
    "flower": {
        *BOTTOM,
        "strategies",
        "attacks",
        "uplinks",
        "data",
        "problems",
        "store",
        "live",
        "engine",
        "experiment",
        "presets",
        "runs",
    },
    "cluster": {
        *BOTTOM,
        *("kernels", "strategies", "attacks", "uplinks", "data", "problems", "store", "live", "engine"),
        *("experiment", "runs"),
    },
    "dashboard": {
        *BOTTOM,
        *("kernels", "strategies", "privacy", "delays", "store", "experiment", "runs", "analysis", "certificates"),
        "report",
    },
    "testing": {*BOTTOM, "rules", "uplinks", "problems", "delays", "strategies", "attacks"},
    "api": {
        *BOTTOM,
        "privacy",
        "strategies",
        "problems",
        "delays",
        "experiment",
        "engine",
        "attacks",
        "live",
        "runs",
        "analysis",
        "certificates",
        "advice",
        "report",
        "cluster",
    },
    "sklearn": {
        *BOTTOM,
        *("kernels", "strategies", "problems", "delays", "engine", "experiment", "presets", "api"),
    },
    "reproduce": {
        *BOTTOM,
        *("data", "delays", "strategies", "engine", "store", "experiment", "presets", "runs", "analysis", "report"),
    },
    "cli": {
        *BOTTOM,
        *(
            "data",
            "privacy",
            "attacks",
            "experiment",
            "presets",
            "live",
            "runs",
            "analysis",
            "certificates",
            "report",
            "flower",
            "cluster",
            "dashboard",
            "arena",
            "robustness",
            "privacy_audit",
            "communication",
            "api",
            "reproduce",
        ),
    },
    "__main__": {"cli"},
}
"""What of AsyncFed a room, or a module that lies in none, may import besides itself.

`__init__.py` hands public names on from wherever they are, when they are asked for.
"""

OUTSIDE = {
    "core": {"msgspec"},
    "kernels": {"numpy", "numba", "llvmlite", "scipy"},
    "rules": {"numpy", "scipy"},
    "privacy": {"numpy", "scipy"},
    "uplinks": {"numpy", "scipy", "zstandard"},
    "problems": {"numpy", "scipy", "torch", "safetensors"},
    "data": {"numpy", "scipy", "pyarrow", "sklearn", "pandas"},
    "delays": {"numpy", "scipy"},
    "attacks": {"numpy"},
    "store": {"numpy"},
    "theory": {"numpy", "scipy"},
    "engine": {"numpy"},
    "sim": {"numpy"},
    "live": {"numpy"},
    "experiment": {"tomli_w"},
    "presets": {"numpy"},
    "runs": {"numpy"},
    "analysis": {"numpy", "scipy", "pandas"},
    "certificates": {"numpy"},
    "advice": {"numpy", "optuna"},
    "arena": {"numpy", "scipy"},
    "robustness": {"numpy"},
    "privacy_audit": {"numpy", "scipy"},
    "communication": {"numpy"},
    "report": {
        *("numpy", "matplotlib", "rich", "pyarrow", "plotly"),
        *("prometheus_client", "tensorboardX", "mlflow"),
    },
    "flower": {"numpy", "flwr", "cryptography"},
    "cluster": {"numpy", "ray"},
    "dashboard": {"numpy", "starlette", "uvicorn"},
    "testing": {"numpy"},
    "api": {"numpy"},
    "sklearn": {"numpy", "scipy", "sklearn", "threadpoolctl"},
    "reproduce": {"numpy"},
    "cli": {"typer", "rich"},
}
"""What a room may import from outside the standard library and AsyncFed."""

CONFINED = {
    "numba": ("kernels/",),
    "llvmlite": ("kernels/",),
    "matplotlib": ("report/figures/",),
    "msgspec": ("core/record.py",),
    "tomli_w": ("experiment.py",),
    "sqlite3": ("store/",),
    "rich": ("cli/", "report/terminal/"),
    "typer": ("cli/",),
    "pyarrow": ("data/reading/", "report/export.py"),
    "sklearn": ("data/built_in.py", "sklearn/"),
    "threadpoolctl": ("sklearn/",),
    "plotly": ("report/page/",),
    "pandas": ("data/built_in.py", "analysis/frames.py"),
    "prometheus_client": ("report/trackers/",),
    "tensorboardX": ("report/trackers/",),
    "mlflow": ("report/trackers/",),
    "torch": ("problems/pytorch/",),
    "optuna": ("advice/proposals.py",),
    "safetensors": ("problems/pytorch/torch_problem.py",),
    "flwr": ("flower/",),
    "ray": ("cluster/",),
    "starlette": ("dashboard/",),
    "uvicorn": ("dashboard/",),
    "cryptography": ("flower/credentials.py",),
    "zstandard": ("uplinks/zstandard.py",),
}
"""Each dependency is imported in one place."""

DECIDES_OR_COMPUTES = {
    *("core", "strategies", "rules", "uplinks", "privacy", "kernels", "problems", "data", "delays", "theory"),
    *("attacks", "engine", "sim", "live", "analysis", "certificates"),
}
KNOWS_THE_CLOCK = ("kernels/threads.py", "live/local/")
"""Within rooms that decide or compute: threads around kernels, and the engine that meets real processes."""


@cache
def imports_of(module):
    """Full dotted names, with what `from … import` names appended: `asyncfed.core.types.Work`, `numpy`, `os.path`."""
    tree = ast.parse((SOURCE / module).read_text())
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    names = []
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the full name."
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def room_of(name):
    """The room, or for what lies in none the module, that a dotted name or a path belongs to."""
    if name.startswith("asyncfed"):
        return [*name.split("."), "__init__"][1]
    parts = Path(name).with_suffix("").parts
    return parts[0]


def inside(module):
    return [name for name in imports_of(module) if name.split(".")[0] == "asyncfed"]


def outside(module):
    return {name.split(".")[0] for name in imports_of(module)} - {"asyncfed"}


def in_rooms(*rooms):
    return [module for module in MODULES if room_of(module) in rooms]


def dotted(module):
    return "asyncfed." + module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def modules_imported_by(module):
    """The modules, not the names in them; a package counts as its `__init__`."""
    known = {dotted(other) for other in MODULES}
    return {name if name in known else name.rpartition(".")[0] for name in inside(module)} - {dotted(module)}


def test_every_room_is_on_the_map():
    assert {room_of(module) for module in MODULES} - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_below_it(room):
    allowed = ROOMS[room] | {room}
    wrong = [(module, name) for module in in_rooms(room) for name in inside(module) if room_of(name) not in allowed]
    assert not wrong, f"module and import: {wrong}; {room} may import {sorted(allowed)} only."


def test_the_map_has_no_cycle():
    order, waiting = [], dict(ROOMS)
    while waiting:
        free = [room for room, below in waiting.items() if below <= {*order, room}]
        assert free, f"These rooms import each other: {sorted(waiting)}."
        order += free
        waiting = {room: below for room, below in waiting.items() if room not in free}


def test_no_module_imports_itself_through_others():
    """Function-level imports included: a cycle that only shows when a function is called is one all the same."""
    graph = {dotted(module): modules_imported_by(module) for module in MODULES if module != "__init__.py"}
    while graph:
        free = [name for name, needed in graph.items() if not needed & graph.keys()]
        if not free:
            stuck = {name: sorted(needed & graph.keys()) for name, needed in graph.items()}
            pytest.fail(f"modules in a cycle, or above one: {stuck}")
        for name in free:
            del graph[name]


@pytest.mark.parametrize("module", in_rooms("theory"))
def test_theory_borrows_the_losses_the_objective_and_its_minimiser_and_nothing_else(module):
    """Each formula is written once; the bounds themselves are functions of numbers."""
    losses = ("asyncfed.kernels.losses.", "asyncfed.kernels.softmax_losses.")
    borrowed = ("asyncfed.core.errors.", "asyncfed.core.record.", *losses)
    objectives = ("asyncfed.problems.objective.", "asyncfed.problems.softmax_objective.", "asyncfed.problems.newton.")
    allowed = (*borrowed, *objectives, "asyncfed.theory.")
    assert not [name for name in inside(module) if not name.startswith(allowed)]
    if module.startswith("theory/bounds/"):
        assert all(name.startswith((*borrowed[:2], "asyncfed.theory.bounds.")) for name in inside(module))


@pytest.mark.parametrize("module", in_rooms("engine", "live"))
def test_engines_know_keys_of_noise_memory_and_no_kernel_that_computes(module):
    kernels = [name for name in inside(module) if name.startswith("asyncfed.kernels")]
    allowed = ("asyncfed.kernels.noise_keys.", "asyncfed.kernels.recycled_memory.")
    assert all(name.startswith(allowed) for name in kernels)


def test_data_know_the_kernels_that_make_rows_and_no_other():
    allowed = ("asyncfed.kernels.drawn_sizes.", "asyncfed.kernels.population_rows.", "asyncfed.kernels.threads.")
    kernels = [name for module in in_rooms("data") for name in inside(module) if name.startswith("asyncfed.kernels")]
    assert kernels
    assert all(name.startswith(allowed) for name in kernels)


@pytest.mark.parametrize("room", sorted({room_of(module) for module in MODULES}))
def test_dependencies_are_those_of_the_room(room):
    allowed = OUTSIDE.get(room, set())
    others = {module: outside(module) - allowed - sys.stdlib_module_names for module in in_rooms(room)}
    wrong = {module: sorted(names) for module, names in others.items() if names}
    assert not wrong, f"imported by modules: {wrong}; allowed are {sorted(allowed)}."


@pytest.mark.parametrize("dependency", CONFINED)
def test_a_dependency_is_imported_in_one_place(dependency):
    users = [module for module in MODULES if dependency in outside(module)]
    wrong = [m for m in users if not m.startswith(CONFINED[dependency])]
    assert not wrong, f"{wrong} import {dependency}, which belongs to {CONFINED[dependency]}."


@pytest.mark.parametrize("room", sorted(DECIDES_OR_COMPUTES))
def test_time_and_chance_are_arguments(room):
    modules = [module for module in in_rooms(room) if not module.startswith(KNOWS_THE_CLOCK)]
    assert modules
    assert not [module for module in modules if outside(module) & AMBIENT]


def test_the_command_line_uses_public_names_only():
    names = [(module, name) for module in in_rooms("cli") for name in inside(module)]
    assert not [(m, name) for m, name in names if any(p[0] == "_" and p[-2:] != "__" for p in name.split("."))]


@pytest.mark.parametrize("package", [m for m in MODULES if m.endswith("__init__.py")])
def test_no_module_shares_its_name_with_what_its_package_exports(package):
    """`asyncfed.compare` must not be a function for one reader and a module for another."""
    folder = (SOURCE / package).parent
    modules = {path.stem for path in folder.glob("*.py")} | {p.name for p in folder.iterdir() if p.is_dir()}
    exported = {name.rpartition(".")[2] for name in inside(package) if name.rpartition(".")[0] != dotted(package)}
    assert not exported & modules


def _is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def code_lines(module):
    """Lines with code on them: no blank lines, comments or docstrings."""
    text = (SOURCE / module).read_text()
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() and line.strip()[0] != "#"}
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and _is_text(statement.value):
                lines -= set(range(statement.lineno, statement.end_lineno + 1))
    return len(lines)


def test_the_core_can_be_read_in_half_an_hour():
    assert sum(code_lines(module) for module in in_rooms("core")) <= 594


def test_the_papers_algorithm_stays_short():
    """120 lines decide; 25 more list its four readings with what is known of them, 8 say it in numbers."""
    assert code_lines("strategies/afl.py") <= 153


def test_every_folder_of_code_is_a_package():
    """A folder without `__init__.py` works in a checkout and is left out of an installed package."""
    folders = {(SOURCE / module).parent for module in MODULES}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]
