"""Conformance checks for what a user may write: a strategy, a problem, a delay model. All that is shipped passes them.

Each check raises `AssertionError` with a sentence that says what is wrong and when it happened.

>>> from asyncfed.strategies import FedAsync
>>> check_strategy(FedAsync(concurrency=3))
"""

from asyncfed.testing.delay_check import check_delay
from asyncfed.testing.problem_check import check_problem
from asyncfed.testing.strategy_check import check_strategy

__all__ = ["check_delay", "check_problem", "check_strategy"]
