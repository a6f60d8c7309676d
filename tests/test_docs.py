"""What the documents say is true: their code runs, prints what they show, names every setting, and links to what is."""

import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from asyncfed.cli import app as cli
from asyncfed.core.record import Config
from asyncfed.experiment import Experiment
from asyncfed.presets.algorithm_cards import CARD_PARAGRAPHS, card_named
from asyncfed.registry import part_members
from asyncfed.strategies import algorithms

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
"""Their code is executed, and its output compared, by `make docs`; here only their links are followed."""
GUIDE = ROOT / "docs" / "guide.md"
SETTINGS = ROOT / "docs" / "settings.md"
ATTACKS = ROOT / "docs" / "attacks.md"
TORCH_EXAMPLES = {"digits_cnn.py", "own_module.py", "wind_lstm.py"}  # see test_torch_examples.py
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py" and path.name not in TORCH_EXAMPLES
)
LONG_EXAMPLES = {
    *("breast_cancer_hospitals.py", "flights_by_carrier.py"),
    *("own_data.py", "own_strategy.py", "secure_aggregation.py", "stragglers.py"),
}
LONG_DOCUMENTS = {"guide.md", "torch.md", "theory.md"}
"""What takes long is marked slow; the README and one example are run every time."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


# ---- code and what it prints ---------------------------------------------------------------------------------------


def blocks(path):
    """(line number, language, content) of every fenced block; a `text` block is the output of the one before it."""
    text = path.read_text()
    return [(text.count("\n", 0, found.start()) + 1, found[1], found[2]) for found in FENCE.finditer(text)]


def printed_by_python(source, namespace, where):
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(source, where, "exec"), namespace)
    return output.getvalue()


def printed_by_command(command, monkeypatch):
    """Worker processes change the speed and nothing else, and starting them takes longer than these runs."""
    words = shlex.split(command)
    assert words[0] == "asyncfed", f"{command}: only asyncfed is run here; show other commands in an indented block."
    monkeypatch.setattr(sys, "argv", [*words, *(["--workers", "1"] if words[1] == "compare" else [])])
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output), suppress(SystemExit):
        cli.main()
    return output.getvalue()


def lines_of(text):
    """Lines that say something: progress bars leave empty ones behind, and tables end in blanks."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.name in LONG_DOCUMENTS), id=name_of(path))
        for path in DOCUMENTS
    ],
)
def test_code_runs_and_prints_what_is_shown(path, tmp_path, monkeypatch):
    if path.name == "torch.md":
        pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    namespace, printed = {"__name__": "__docs__"}, ""
    for line, language, content in blocks(path):
        where = f"{name_of(path)}, line {line}"
        if language == "python":
            printed = printed_by_python(content, namespace, where)
        elif language == "console":
            command, _, shown = content.partition("\n")
            assert command.startswith("$ "), where
            assert lines_of(printed_by_command(command[2:], monkeypatch)) == lines_of(shown), where
        elif language == "text":
            assert lines_of(printed) == lines_of(content), where
        elif language == "toml":
            (tmp_path / "experiment.toml").write_text(content)
        else:
            raise AssertionError(f'{where}: "{language}" blocks are not checked; use python, text, console or toml.')


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * (path.name in LONG_EXAMPLES), id=name_of(path))
        for path in EXAMPLES
    ],
)
def test_examples_print_what_lies_beside_them(path, tmp_path):
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == path.with_suffix(".out").read_text()


# ---- settings ------------------------------------------------------------------------------------------------------


def configs_in(annotation):
    """The settings a field may hold: those of registered parts are all that are shipped."""
    members = part_members(annotation)
    if members is not None:
        return [member for member in members if member.__module__.startswith("asyncfed.")]
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [found for part in get_args(annotation) for found in configs_in(part)]


def all_configs(root):
    found = [root]
    for config in found:
        for annotation in get_type_hints(config).values():
            found += [c for c in configs_in(annotation) if c not in found]
    return found


def written(value):
    """A default as the guide writes it; tables that have a section of their own are only pointed to."""
    if isinstance(value, Config):
        tag = value.__struct_config__.tag
        return "table" if tag is None else tag
    if value is None or value is msgspec.UNSET:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value)
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def settings_of(config):
    return {
        field.name: "required" if field.required else written(field.default) for field in msgspec.structs.fields(config)
    }


def described_settings():
    """{name: [{key: default}, ...]} of the tables in the guide and in settings.md.

    Their first cell names a kind or a section. Either one row a key below a head `| name | default | ...`, or one row
    a kind below `| kind | keys | ...`.
    """
    tables, head, current = {}, None, None
    for line in (GUIDE.read_text() + ATTACKS.read_text() + SETTINGS.read_text()).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            head = None
        elif head is None:
            head = cells
            if cells[1] == "default":
                current = {}
                tables.setdefault(cells[0].strip("`"), []).append(current)
        elif set(cells[0]) <= set("-:"):
            continue
        elif head[1] == "default":
            current[cells[0].strip("`")] = cells[1].strip("`")
        elif head[:2] == ["kind", "keys"]:
            keys = [key.partition(" = ") for key in re.findall(r"`([^`]+)`", cells[1])]
            tables.setdefault(cells[0].strip("`"), []).append({k: value or "required" for k, _, value in keys})
    return tables


SECTIONS = {
    "Experiment": "experiment",
    "LinearModel": "[model]",
    "Work": "[strategy.work]",
    "Delays": "[delays]",
    "Device": "[[delays.devices]]",
    "Availability": "[delays.availability]",
    "Budget": "[budget]",
    "Churn": "[[churn]]",
    "Evaluation": "[evaluation]",
    "Holdout": "[holdout]",
    "Liars": "[attack]",
    "Stopping": "[stopping]",
    "SecureAggregation": "secure_aggregation",
}


@pytest.mark.parametrize("config", all_configs(Experiment), ids=lambda config: config.__name__)
def test_the_documentation_names_every_key_and_its_default(config):
    name = config.__struct_config__.tag or SECTIONS[config.__name__]
    assert settings_of(config) in described_settings().get(name, []) or not settings_of(config)


def generator():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date():
    """Else run `python docs/generate.py`."""
    made = generator()
    page = ROOT / "docs" / "algorithms.md"
    assert made.settings_page() == SETTINGS.read_text()
    assert made.algorithms_page(page.read_text()) == page.read_text()


@pytest.mark.parametrize("name", algorithms())
def test_every_card_says_what_cards_say(name):
    card = card_named(name)
    places = [card.find(f"\n{words}") for words in CARD_PARAGRAPHS]
    assert -1 not in places, [words for words, place in zip(CARD_PARAGRAPHS, places, strict=True) if place < 0]
    assert places == sorted(places)
    assert "Bytes" in card


# ---- links ---------------------------------------------------------------------------------------------------------


def anchors(path):
    """What a heading is called in a link: lower case, spaces as hyphens, punctuation left out."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*DOCUMENTS, *TUTORIALS], ids=name_of)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file) if file else path
        assert there.exists(), f"{name_of(path)} links to {target}"
        assert not anchor or anchor in anchors(there), f"{name_of(path)} links to {target}"


# ---- the map of the code -------------------------------------------------------------------------------------------


def test_the_architecture_page_names_files_that_exist():
    package = ROOT / "src" / "asyncfed"
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", text))
    there = {path.relative_to(package).as_posix() for path in package.rglob("*.py")}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    known = there | tests | {Path(path).name for path in there | tests}
    assert len(named) > 40
    assert not named - known, f"docs/architecture.md names files that do not exist: {sorted(named - known)}"


def test_the_architecture_page_lists_every_room():
    package = ROOT / "src" / "asyncfed"
    rows = (ROOT / "docs" / "architecture.md").read_text().split("## The rooms")[1].split("## Where")[0]
    rooms = [f"`{path.name}/`" for path in package.iterdir() if (path / "__init__.py").exists()]
    assert len(rooms) > 15
    assert not [room for room in rooms if f"| {room} |" not in rows]
