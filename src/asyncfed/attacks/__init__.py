"""Attacks: how clients lie, as values, and the problems and shards whose clients do."""

from asyncfed.attacks.backdoor import Backdoor
from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.colluding import Colluding
from asyncfed.attacks.constant_update import ConstantUpdate
from asyncfed.attacks.gaussian_noise import GaussianNoise
from asyncfed.attacks.held_back import HeldBackDelays, hold_back
from asyncfed.attacks.inner_product import InnerProduct
from asyncfed.attacks.join_liars import liars_of, lying_node, with_liars, without_liars
from asyncfed.attacks.label_flip import LabelFlip
from asyncfed.attacks.liars import Liars
from asyncfed.attacks.little_is_enough import LittleIsEnough
from asyncfed.attacks.lying_problem import LyingProblem
from asyncfed.attacks.lying_shard import LyingShard
from asyncfed.attacks.mimic import Mimic
from asyncfed.attacks.protocol import Attack, LiarView, Lying, Targets
from asyncfed.attacks.replay_update import ReplayUpdate
from asyncfed.attacks.scaling import Scaling
from asyncfed.attacks.sign_flip import SignFlip
from asyncfed.attacks.slow_poison import SlowPoison
from asyncfed.attacks.zero_update import ZeroUpdate

__all__ = [
    "Attack",
    "Backdoor",
    "Coalition",
    "Colluding",
    "ConstantUpdate",
    "GaussianNoise",
    "HeldBackDelays",
    "InnerProduct",
    "LabelFlip",
    "LiarView",
    "Liars",
    "LittleIsEnough",
    "Lying",
    "LyingProblem",
    "LyingShard",
    "Mimic",
    "ReplayUpdate",
    "Scaling",
    "SignFlip",
    "SlowPoison",
    "Targets",
    "ZeroUpdate",
    "hold_back",
    "liars_of",
    "lying_node",
    "with_liars",
    "without_liars",
]
