"""Every shipped uplink passes the public conformance check."""

import pytest

from asyncfed.registry import kinds
from asyncfed.testing import check_uplink
from asyncfed.uplinks import QSGD, Cast, Clip, ErrorFeedback, LowRank, RandK, Sign, TopK, Whole, Zstandard

SHIPPED = {kind: made for kind, made in kinds("uplink").items() if made.__module__.startswith("asyncfed.")}
CODECS = [
    Whole(),
    TopK(fraction=1.0),
    TopK(fraction=0.3, values="bfloat16"),
    TopK(fraction=0.5, values="float16"),
    RandK(fraction=0.3),
    RandK(fraction=0.8, values="float32"),
    RandK(fraction=0.3, scaled=False),
    QSGD(levels=1, bucket=0),
    QSGD(levels=3, bucket=10),
    QSGD(levels=1000, bucket=0),
    Sign(),
    Sign(bucket=8),
    Cast(to="bfloat16"),
    Cast(to="float16"),
    Cast(to="float32"),
    Clip(norm=2.0),
    Zstandard(codec=QSGD(levels=1, bucket=0)),
    Zstandard(codec=Whole(), level=19),
]


@pytest.mark.parametrize("kind", SHIPPED)
def test_it_passes(kind):
    check_uplink(SHIPPED[kind]())


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_with_other_settings_too(codec):
    check_uplink(codec, seed=1)


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_inside_error_feedback(codec):
    check_uplink(ErrorFeedback(codec=codec), seed=2)


@pytest.mark.parametrize("iterations", [1, 3])
def test_low_rank_with_matrices(iterations):
    codec = LowRank(rank=2, iterations=iterations, shapes=((8, 6), (3, 2, 5), (7,), (), (0, 3), (2, 2)))
    check_uplink(codec, sizes=(48 + 30 + 7 + 1 + 4,))
    check_uplink(ErrorFeedback(codec=codec), sizes=(48 + 30 + 7 + 1 + 4,))


@pytest.mark.parametrize("norm", [1e-3, 1e6])
def test_clipping_little_and_much(norm):
    check_uplink(Clip(norm=norm), seed=1)
