"""What every part of an experiment must be: a frozen value that can be pickled, hashed and written down."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from asyncfed.core.record import from_plain, to_plain

T = TypeVar("T")


def pickled_copy(value: T, what: str) -> T:
    """The value, pickled and read back. AssertionError if it is not equal to it, or either cannot be hashed."""
    try:
        copy: T = pickle.loads(pickle.dumps(value))
    except Exception as problem:
        raise AssertionError(f"the {what} cannot be pickled ({problem}); keep only plain values in it.") from problem
    assert copy == value, f"the {what} is not equal to its pickled copy; make it a frozen value, such as a Config."
    try:
        same = hash(copy) == hash(value)
    except TypeError as problem:
        raise AssertionError(f"the {what} is not hashable ({problem}); use tuples in place of lists.") from problem
    assert same, f"the {what} and its pickled copy have different hashes."
    return copy


def check_part(part: Any, what: str, protocol: type[Any]) -> Any:
    """A pickled copy of a part that is frozen, satisfies the protocol, and is read back from TOML by its kind."""
    assert isinstance(part, protocol), f"the {what} lacks a method or property of {protocol.__name__}; see its table."
    copy = pickled_copy(part, what)
    for name in (*getattr(part, "__struct_fields__", ()), *getattr(part, "__dict__", ())):
        try:
            setattr(copy, name, getattr(copy, name))
        except AttributeError:
            continue
        raise AssertionError(f"the {what}'s field {name} can be set; make it a frozen value, such as a Config.")
    with blame(f"the {what} cannot be written as text and read back; is it a Config with a tag, and registered?"):
        again = from_plain(json.loads(json.dumps(to_plain(part))), protocol)
    assert again == part, f"the {what} is {again} after it was written as text and read back; it was {part}."
    return copy


@contextmanager
def blame(when: str, allowed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """What goes wrong in here is the fault of what is checked, except for what is allowed, which passes."""
    try:
        yield
    except allowed:
        raise
    except AssertionError as problem:
        raise AssertionError(f"{when}: {problem}") from problem
    except Exception as problem:
        raise AssertionError(f"{when}: {type(problem).__name__}: {problem}") from problem
