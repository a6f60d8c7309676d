"""Differential privacy of clients: accounting without sampling, and the modes that put it into a run."""

from asyncfed.privacy.central import Central
from asyncfed.privacy.gaussian import epsilon_of, multiplier_for
from asyncfed.privacy.local import Local
from asyncfed.privacy.protocol import Claim, Privacy, Setting
from asyncfed.privacy.tree import epsilon_of_tree, tree_multiplier_for, tree_sensitivity
from asyncfed.privacy.tree_mode import Tree

__all__ = [
    "Central",
    "Claim",
    "Local",
    "Privacy",
    "Setting",
    "Tree",
    "epsilon_of",
    "epsilon_of_tree",
    "multiplier_for",
    "tree_multiplier_for",
    "tree_sensitivity",
]
