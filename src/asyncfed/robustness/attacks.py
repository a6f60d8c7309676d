"""The attacks of the study, by name, with the settings that are used everywhere."""

from __future__ import annotations

from asyncfed.attacks import (
    Attack,
    Colluding,
    ConstantUpdate,
    GaussianNoise,
    InnerProduct,
    LabelFlip,
    LittleIsEnough,
    Mimic,
    ReplayUpdate,
    Scaling,
    SignFlip,
    SlowPoison,
    ZeroUpdate,
)
from asyncfed.core.record import Record


class StudyAttack(Record):
    """An attack by name.

    Args:
        name: what it is called in the study.
        summary: a line about it, with its settings and what liars know.
        attack: the attack itself.
    """

    name: str
    summary: str
    attack: Attack


def _attacks() -> list[StudyAttack]:
    return [
        StudyAttack("sign_flip", "the opposite of the honest change; a liar knows its own data", SignFlip()),
        StudyAttack("sign_flip_10", "the opposite of the honest change, ten times as long", SignFlip(scale=10.0)),
        StudyAttack("scaling", "the honest change, ten times as long", Scaling(factor=10.0)),
        StudyAttack("gaussian_noise", "normal noise, ten times as long as the honest change", GaussianNoise(std=10.0)),
        StudyAttack("constant", "the same vector, 0.1 in each number, in every ticket", ConstantUpdate(value=0.1)),
        StudyAttack("zero_update", "the model back as it came", ZeroUpdate()),
        StudyAttack("label_flip", "honest training on targets that are turned around", LabelFlip()),
        StudyAttack(
            "little_is_enough",
            "the mean of the liars' honest changes less z of their standard deviations, z by the paper's formula",
            LittleIsEnough(),
        ),
        StudyAttack("inner_product", "half a step against the mean of the liars' honest changes", InnerProduct()),
        StudyAttack("mimic", "what the first liar would honestly send, by all of them", Mimic()),
        StudyAttack(
            "replay", "the change that the liar made from the run's first model, in every ticket", ReplayUpdate()
        ),
        StudyAttack(
            "slow_poison",
            "honest in seven tickets of ten; in the others a sign flip ten times as long, ten times as late",
            SlowPoison(),
        ),
        StudyAttack(
            "colluding",
            "a direction that the liars agree on, as long as the mean of their honest changes",
            Colluding(),
        ),
    ]


ATTACKS: dict[str, StudyAttack] = {attack.name: attack for attack in _attacks()}
"""All attacks by name, in the order in which they are listed."""
