"""Which tensors the flat params of a problem are made of."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from asyncfed.problems.protocol import Problem

Shapes: TypeAlias = tuple[tuple[int, ...], ...]


@runtime_checkable
class KnowsShapes(Protocol):
    """A problem that knows the shapes of its tensors."""

    @property
    def param_shapes(self) -> Shapes:
        """One shape after another, in the order of the flat params; empty if they are not known."""
        ...


def shapes_of(problem: Problem) -> Shapes:
    """The shapes of the tensors that the params are made of, in order; empty if the problem does not know them."""
    return problem.param_shapes if isinstance(problem, KnowsShapes) else ()
