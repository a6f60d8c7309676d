"""Conformance checks for what a user may write: a strategy, a rule, an uplink, a problem, a delay model, an attack.

All that is shipped passes them. Each check raises `AssertionError` with a sentence that says what is wrong and when it
happened.

>>> from asyncfed.strategies import FedAsync
>>> check_strategy(FedAsync(concurrency=3))
"""

from asyncfed.testing.attack_check import check_attack
from asyncfed.testing.delay_check import check_delay
from asyncfed.testing.problem_check import check_problem
from asyncfed.testing.rule_check import check_rule
from asyncfed.testing.strategy_check import check_strategy
from asyncfed.testing.uplink_check import check_uplink

__all__ = ["check_attack", "check_delay", "check_problem", "check_rule", "check_strategy", "check_uplink"]
