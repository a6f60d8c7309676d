"""The problems that can be certified: those whose constants are known."""

from __future__ import annotations

from typing import TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.problems.linear import Linear
from asyncfed.problems.protocol import Problem
from asyncfed.problems.softmax import Softmax
from asyncfed.theory.constants import Constants, constants
from asyncfed.theory.linear_data import LinearData
from asyncfed.theory.softmax_constants import softmax_constants

Certifiable: TypeAlias = Linear | Softmax


def certifiable_problem(problem: Problem) -> Certifiable:
    """The problem, if theorems can be checked on it: their constants are computed for linear and softmax models."""
    if not isinstance(problem, Linear | Softmax):
        raise ConfigError(
            f"The problem is a {type(problem).__name__}; certificates are made for linear models and softmax, whose "
            "constants (L, μ, the optimum) can be computed. Certify an asyncfed.problems.Linear or Softmax."
        )
    return problem


def problem_constants(problem: Certifiable, batch_size: int | None, start: object) -> Constants:
    """All constants of a problem, for mini-batches of this size and from this start."""
    if isinstance(problem, Softmax):
        return softmax_constants(problem, batch_size, start)
    return constants(LinearData.of_problem(problem), batch_size=batch_size, start=start)
