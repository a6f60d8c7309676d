"""Named arrays: whether they can be stored, whether they are the same, and whether somebody changed them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray]


def copy_arrays(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """The arrays under the same names, none of them shared."""
    return {name: array.copy() for name, array in arrays.items()}


def bits_of(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """What two sets of arrays must agree in to be the same, NaN included."""
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def through_a_file(arrays: Arrays) -> Arrays:
    """What a checkpoint gives back: an .npz without pickles."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@contextmanager
def left_alone(arrays: Mapping[str, np.ndarray], who: str) -> Iterator[None]:
    """AssertionError if one of the arrays is changed in here."""
    before = bits_of(arrays)
    yield
    after = bits_of(arrays)
    changed = [name for name in before if after[name] != before[name]]
    assert not changed, f"{who} changed {changed[0]} in place; it must copy what it is given."


def expect_arrays(arrays: Any, what: str) -> None:
    """AssertionError unless these are numbers by name that can be stored without pickles."""
    assert type(arrays) is dict, f"{what} is a {type(arrays).__name__}; it must be a dict of arrays by name."
    for name, array in arrays.items():
        assert type(name) is str, f"{what} has the name {name!r}; names are strings."
        assert isinstance(array, np.ndarray), f'{what} holds a {type(array).__name__} as "{name}"; make it an array.'
        assert array.dtype.kind in "biuf", f'{what} holds {array.dtype} as "{name}"; only numbers can be stored.'


def expect_vector(vector: Any, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> None:
    """AssertionError unless this is a finite vector of this shape and type."""
    assert isinstance(vector, np.ndarray), f"{what} is a {type(vector).__name__}; it must be an array."
    assert vector.shape == shape, f"{what} has shape {vector.shape}; it must have {shape}."
    assert vector.dtype == dtype, f"{what} holds {vector.dtype}; it must hold {dtype}, as the model does."
    assert np.isfinite(vector).all(), f"{what} is not finite, though all that went in was."
