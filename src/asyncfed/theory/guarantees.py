"""Guarantees: which theorem covers a run, what it promises version by version, and up to which learning rate.

A theorem is never evaluated for a rule it does not cover: what is missing is said instead.
"""

from __future__ import annotations

from asyncfed.theory.constants import Constants
from asyncfed.theory.guarantee import Curve, Guarantee
from asyncfed.theory.mean_guarantees import (
    hinge_guarantee,
    r_conv_guarantee,
    r_guarantee,
    r_star_guarantee,
    theorem_guarantee,
    theorem_printed_guarantee,
)
from asyncfed.theory.path_guarantees import m_guarantee, p_guarantee
from asyncfed.theory.setting import Setting

THEOREMS = (
    r_star_guarantee,
    r_guarantee,
    r_conv_guarantee,
    theorem_guarantee,
    theorem_printed_guarantee,
    p_guarantee,
    m_guarantee,
    hinge_guarantee,
)
"""Bounds on means before path-wise ones."""


def guarantees(setting: Setting, constants: Constants, versions: Curve) -> tuple[Guarantee, ...]:
    """Every theorem, the strongest first; curves are given at these versions (0, 1, …)."""
    return tuple(make(setting, constants, versions) for make in THEOREMS)


def admissible(found: tuple[Guarantee, ...]) -> Guarantee | None:
    """The theorem that covers the run as it is, or would with a smaller step: bounds on means before path-wise ones."""
    return next((g for g in found if not g.missing and g.largest_rate is not None), None)
