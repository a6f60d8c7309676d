"""Everything public explains itself: a docstring of its own that names every argument, field and return value."""

import inspect
import re
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))  # the site's builder lies beside the package, not in it

from docsite.public_objects import public_objects

PUBLIC = public_objects()


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


def test_everything_is_found():
    assert len(PUBLIC) > 250
    assert "asyncfed.experiment.Experiment" in PUBLIC


def test_each_has_a_docstring_of_its_own():
    assert not [name for name, value in PUBLIC.items() if not (own_docstring(value) or "").strip()]


def arguments_not_named(value):
    text = own_docstring(value) or ""
    if inspect.isclass(value) and not issubclass(value, msgspec.Struct):
        text += value.__init__.__doc__ or ""
    return [argument for argument in arguments_of(value) if not re.search(rf"\b{argument}\b", text)]


def test_docstrings_name_every_argument():
    missing = {name: arguments_not_named(PUBLIC[name]) for name in PUBLIC if name not in MADE_BY_FUNCTIONS}
    assert not {name: arguments for name, arguments in missing.items() if arguments}


def test_functions_say_what_they_return():
    functions = {n: value for n, value in PUBLIC.items() if inspect.isfunction(value) and arguments_of(value)}
    nothing = (None, "None", "NoReturn", inspect.Signature.empty)
    answering = [n for n, value in functions.items() if inspect.signature(value).return_annotation not in nothing]
    assert answering
    assert not [name for name in answering if "Returns:" not in (functions[name].__doc__ or "")]
