"""Every shipped uplink passes the public conformance check."""

import pytest

from asyncfed.registry import kinds
from asyncfed.testing import check_uplink
from asyncfed.uplinks import Clip, ErrorFeedback, TopK

SHIPPED = {kind: made for kind, made in kinds("uplink").items() if made.__module__.startswith("asyncfed.")}


@pytest.mark.parametrize("kind", SHIPPED)
def test_it_passes(kind):
    check_uplink(SHIPPED[kind]())


@pytest.mark.parametrize(
    "uplink",
    [
        TopK(fraction=1.0),
        TopK(fraction=0.5),
        ErrorFeedback(codec=TopK(fraction=0.3)),
        ErrorFeedback(codec=Clip(norm=2.0)),
        Clip(norm=1e-3),
        Clip(norm=1e6),
    ],
    ids=str,
)
def test_with_other_settings_too(uplink):
    check_uplink(uplink, seed=1)
