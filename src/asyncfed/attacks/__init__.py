"""Attacks: how clients lie, as values, and the problems and shards whose clients do."""

from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.held_back import HeldBackDelays, hold_back
from asyncfed.attacks.liars import Liars
from asyncfed.attacks.lying_problem import LyingProblem, liars_of, with_liars, without_liars
from asyncfed.attacks.lying_shard import LyingShard
from asyncfed.attacks.protocol import Attack, LiarView, Lying, Targets
from asyncfed.attacks.scaling import Scaling
from asyncfed.attacks.sign_flip import SignFlip

__all__ = [
    "Attack",
    "Coalition",
    "HeldBackDelays",
    "LiarView",
    "Liars",
    "Lying",
    "LyingProblem",
    "LyingShard",
    "Scaling",
    "SignFlip",
    "Targets",
    "hold_back",
    "liars_of",
    "with_liars",
    "without_liars",
]
