"""Everything public explains itself: a docstring of its own that names every argument, field and return value."""

import importlib
import inspect
import re

import msgspec
import pytest

MODULES = [
    *("asyncfed", "asyncfed.data", "asyncfed.delays", "asyncfed.errors", "asyncfed.presets", "asyncfed.problems"),
    *("asyncfed.registry", "asyncfed.strategies", "asyncfed.testing"),
    "asyncfed.theory.bounds",
]


def exported(name):
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if not n.startswith("_") and getattr(v, "__module__", "") == name]
    return [(n, getattr(module, n)) for n in names]


PUBLIC = {
    f"{value.__module__}.{value.__qualname__}": value
    for module in MODULES
    for _, value in exported(module)
    if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("asyncfed")
}


MADE_BY_FUNCTIONS = {"asyncfed.api.finished_run.Run"}
"""Classes that users get from functions and never make themselves."""


def own_docstring(value):
    return vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__


def arguments_of(value):
    """What a caller passes: the fields of a record, or the parameters of a function or an `__init__`."""
    if inspect.isclass(value):
        if issubclass(value, msgspec.Struct):
            return list(value.__struct_fields__)
        if issubclass(value, BaseException) or getattr(value, "_is_protocol", False):
            return []
        value = value.__init__
        if not inspect.isfunction(value):
            return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "args", "kwargs")]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_it_has_a_docstring_of_its_own(name):
    text = own_docstring(PUBLIC[name])
    assert text, f"{name} has no docstring of its own."
    assert text.strip().splitlines()[0].rstrip(), f"the first line of {name}'s docstring is empty."


@pytest.mark.parametrize(
    "name", sorted({name for name, value in PUBLIC.items() if arguments_of(value)} - MADE_BY_FUNCTIONS)
)
def test_its_docstring_names_every_argument(name):
    value = PUBLIC[name]
    text = own_docstring(value) or ""
    if inspect.isclass(value) and not issubclass(value, msgspec.Struct):
        text += value.__init__.__doc__ or ""
    missing = [argument for argument in arguments_of(value) if not re.search(rf"\b{argument}\b", text)]
    assert not missing, f"the docstring of {name} does not mention {missing}."


@pytest.mark.parametrize(
    "name", sorted(name for name, value in PUBLIC.items() if inspect.isfunction(value) and arguments_of(value))
)
def test_a_function_says_what_it_returns(name):
    value = PUBLIC[name]
    returned = inspect.signature(value).return_annotation
    if returned not in (None, "None", "NoReturn", inspect.Signature.empty):
        assert "Returns:" in (value.__doc__ or ""), f"{name} does not say what it returns."
