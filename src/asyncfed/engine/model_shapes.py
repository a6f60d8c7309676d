"""Shapes of the model for the codecs that ask for them, wherever in a strategy they are."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, kind_of, replace
from asyncfed.problems.param_shapes import Shapes, shapes_of
from asyncfed.problems.protocol import Problem

T = TypeVar("T")


@runtime_checkable
class AsksForShapes(Protocol):
    """A part of a strategy that has to know the tensors of the model; `shapes` is empty until somebody says."""

    @property
    def shapes(self) -> Shapes: ...
    def with_shapes(self, shapes: Shapes) -> Any: ...


def with_model_shapes(strategy: T, problem: Problem) -> T:
    """The strategy with the shapes of the problem's tensors filled in where they were left out.

    Raises:
        ConfigError: a part asks for shapes, and neither the experiment nor the problem gives them.
    """
    filled: T = _fill(strategy, problem)
    return filled


def _fill(value: Any, problem: Problem) -> Any:
    if isinstance(value, tuple):
        parts = tuple(_fill(part, problem) for part in value)
        return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
    if not isinstance(value, Config):
        return value
    if isinstance(value, AsksForShapes):
        if value.shapes:
            return value
        shapes = shapes_of(problem)
        if not shapes:
            raise ConfigError(
                f"{kind_of(type(value))} needs the shapes of the model's tensors, and {type(problem).__name__} has no "
                "`param_shapes`. Give it that property, or set shapes, such as shapes = [[10, 64], [10]]."
            )
        return value.with_shapes(shapes)
    fields = {name: getattr(value, name) for name in value.__struct_fields__}  # type: ignore[attr-defined]
    changed = {name: new for name, old in fields.items() if (new := _fill(old, problem)) is not old}
    return replace(value, **changed) if changed else value
