"""Server rules: how arrivals become the next model; and the vectors of a run."""

from asyncfed.rules.adagrad import Adagrad
from asyncfed.rules.adam import Adam
from asyncfed.rules.clipped import Clipped
from asyncfed.rules.mean import Mean
from asyncfed.rules.momentum import Momentum
from asyncfed.rules.noised import Noised
from asyncfed.rules.optimised import Optimised
from asyncfed.rules.optimiser import Optimiser
from asyncfed.rules.protocol import Arrival, Rule, ServerRule
from asyncfed.rules.rule_run import RuleRun
from asyncfed.rules.vectors import COMBINERS, Vectors
from asyncfed.rules.yogi import Yogi

__all__ = [
    "COMBINERS",
    "Adagrad",
    "Adam",
    "Arrival",
    "Clipped",
    "Mean",
    "Momentum",
    "Noised",
    "Optimised",
    "Optimiser",
    "Rule",
    "RuleRun",
    "ServerRule",
    "Vectors",
    "Yogi",
]
