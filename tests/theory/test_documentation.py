"""The page on theory names every public function, and `help` explains what the constants are."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from asyncfed.api import certify
from asyncfed.certificates.certificate import Certificate
from asyncfed.certificates.client_influence import ClientInfluence
from asyncfed.certificates.measurements import MeasuredRun, PathBound
from asyncfed.theory import batches, bounds, curvature, dissimilarity, minimum, noise
from asyncfed.theory.assumption_checks import AssumptionCheck
from asyncfed.theory.bias import Bias
from asyncfed.theory.constants import Constants, constants
from asyncfed.theory.counter_examples import CounterExample
from asyncfed.theory.guarantee import Guarantee
from asyncfed.theory.queueing import Prediction
from asyncfed.theory.setting import ServerRule, Setting

CONSTANTS_IN = (batches, curvature, dissimilarity, minimum, noise)
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


@pytest.mark.parametrize("module", CONSTANTS_IN, ids=lambda module: module.__name__)
def test_the_tables_name_every_function_of_a_constant_with_its_module(module, tables):
    place = f"| `{module.__name__.removeprefix('asyncfed.')}` |"
    named = set(re.findall(r"`(\w+)`", "\n".join(line for line in tables if place in line)))
    assert set(public_functions(module)) == named


def test_the_tables_name_nothing_that_does_not_exist(tables):
    known = {name for module in CONSTANTS_IN for name in public_functions(module)}
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


PUBLIC = [
    *(getattr(bounds, name) for name in bounds.__all__ if callable(getattr(bounds, name))),
    *(vars(module)[name] for module in CONSTANTS_IN for name in public_functions(module)),
    *(constants, Setting, ServerRule, Guarantee, AssumptionCheck, Bias, Prediction, CounterExample),
    *(Certificate, MeasuredRun, PathBound, ClientInfluence, certify),
]


@pytest.mark.parametrize("public", PUBLIC, ids=lambda one: one.__name__)
def test_help_names_every_argument_and_field(public):
    words = inspect.getdoc(public)
    assert [name for name in inspect.signature(public).parameters if not re.search(rf"\b{name}\b", words)] == []
