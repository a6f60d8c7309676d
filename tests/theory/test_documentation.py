"""The page on theory names every public function, and `help` explains what the constants are."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from asyncfed.theory import batches, bounds, curvature, dissimilarity, minimum, noise
from asyncfed.theory.constants import Constants, constants

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


@pytest.fixture(scope="module")
def tables():
    section = PAGE.read_text().partition("## Which function is which statement")[2]
    return [line for line in section.partition("## Literature")[0].splitlines() if line.startswith("|")]


def public_functions(module):
    return [
        name
        for name, member in vars(module).items()
        if inspect.isfunction(member) and member.__module__ == module.__name__ and not name.startswith("_")
    ]


def test_the_tables_name_every_bound(tables):
    named = set(re.findall(r"`(\w+)`", "\n".join(tables)))
    functions = {name for name in bounds.__all__ if inspect.isfunction(getattr(bounds, name))}
    assert functions - named == set()


@pytest.mark.parametrize("module", [batches, curvature, dissimilarity, minimum, noise], ids=lambda m: m.__name__)
def test_the_tables_name_every_function_of_a_constant_with_its_module(module, tables):
    place = f"| `{module.__name__.removeprefix('asyncfed.')}` |"
    named = set(re.findall(r"`(\w+)`", "\n".join(line for line in tables if place in line)))
    assert set(public_functions(module)) == named


def test_the_tables_name_nothing_that_does_not_exist(tables):
    known = {
        name for module in (batches, curvature, dissimilarity, minimum, noise) for name in public_functions(module)
    }
    known |= {*bounds.__all__, "start"}  # an argument of Lemma 7
    assert set(re.findall(r"`(\w+)`", "\n".join(tables))) <= known


SQUARED = {"optimum_heterogeneity", "phi2", "beta2", *(f.name for f in fields(Constants) if "variance" in f.name)}
NOT_SQUARED = {
    *(f.name for f in fields(Constants) if f.name.endswith(("smoothness", "convexity", "gradient", "subgradient"))),
    *("start_distance", "ball_radius"),
}


@pytest.mark.parametrize("field", [f.name for f in fields(Constants)])
def test_help_explains_every_field_of_constants(field):
    found = re.search(rf"^ +{field}: (.*?)(?=^ +\w+: |\Z)", Constants.__doc__, re.MULTILINE | re.DOTALL)
    assert found is not None, field
    words = " ".join(found[1].split())
    assert ("not squared" in words) == (field in NOT_SQUARED)
    assert ("squared" in words and "not squared" not in words) == (field in SQUARED)


def test_help_names_every_argument_of_constants():
    assert [name for name in inspect.signature(constants).parameters if f" {name}: " not in constants.__doc__] == []
