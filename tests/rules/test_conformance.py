"""Every shipped rule and optimiser passes the public conformance check."""

import pytest

from asyncfed.core.types import Work
from asyncfed.registry import kinds
from asyncfed.rules import Adam, Clipped, Mean, Noised, Optimised
from asyncfed.testing import check_rule
from asyncfed.uplinks import Clip


def shipped(name):
    return {kind: made for kind, made in kinds(name).items() if made.__module__.startswith("asyncfed.")}


SETTINGS = {
    "noised": {"clip": 0.5, "multiplier": 1.0, "divisor": 3},
    "tree_noised": {"clip": 0.5, "multiplier": 1.0, "divisor": 3, "releases": 1000},
}
"""Rules that have settings without a default value."""

WORKS = {
    "feddyn": Work(proximal=0.1),
    "noised": Work(uplink=(Clip(norm=0.5),)),
    "tree_noised": Work(uplink=(Clip(norm=0.5),)),
    "qfair": Work(start_loss=True),
}
"""Rules that want a work of their own."""


@pytest.mark.parametrize("kind", shipped("rule"))
def test_it_passes(kind):
    check_rule(shipped("rule")[kind](**SETTINGS.get(kind, {})), work=WORKS.get(kind))


@pytest.mark.parametrize("kind", shipped("rule"))
def test_it_passes_with_one_client_and_one_parameter(kind):
    check_rule(shipped("rule")[kind](**SETTINGS.get(kind, {})), WORKS.get(kind), num_clients=1, num_params=1, seed=1)


@pytest.mark.parametrize("kind", shipped("optimiser"))
def test_every_optimiser_passes(kind):
    check_rule(Optimised(optimiser=shipped("optimiser")[kind]()))


@pytest.mark.parametrize(
    "rule",
    [
        Optimised(optimiser=Adam(bias_correction=True)),
        Clipped(norm=0.1),
        Optimised(rule=Noised(clip=0.5, multiplier=0.1, divisor=3, rule=Clipped(norm=0.5, rule=Mean()))),
        Clipped(rule=Optimised(rule=Optimised())),
    ],
    ids=str,
)
def test_wrapped_ones_pass(rule):
    check_rule(rule)


WRAPPERS = [kind for kind, made in shipped("rule").items() if "rule" in made.__struct_fields__]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in WRAPPERS if kind not in WORKS])
def test_a_rule_passes_around_an_optimiser_and_inside_one(kind):
    """What wraps a rule keeps that rule's memory beside its own."""
    made = shipped("rule")[kind]
    check_rule(made(rule=Optimised()))
    check_rule(Optimised(rule=made()))
