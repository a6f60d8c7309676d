"""Server rules: how arrivals become the next model; and the vectors of a run."""

from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrival, Rule, ServerRule
from asyncfed.rules.rule_run import RuleRun
from asyncfed.rules.vectors import COMBINERS, Vectors

__all__ = ["COMBINERS", "Arrival", "Mean", "Rule", "RuleRun", "ServerRule", "Vectors"]
