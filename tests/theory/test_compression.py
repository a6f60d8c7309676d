"""What follows from a codec's constants."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.theory.compression import CodecConstants, contraction_of_scaled


@pytest.mark.parametrize(
    ("constants", "biased", "needs", "may", "words"),
    [
        (CodecConstants(1.0, 0.0), False, False, True, "δ = 1, ω = 0"),
        (CodecConstants(0.01, None), True, True, True, "δ = 0.01, biased"),
        (CodecConstants(None, 99.0), False, False, False, "ω = 99"),
        (CodecConstants(None, None), True, True, False, "biased"),
        (CodecConstants(1 - 2**-16, None), True, True, True, "δ = 1 - 1.5e-05, biased"),
    ],
)
def test_what_a_codec_needs(constants, biased, needs, may, words):
    assert (constants.biased, constants.needs_error_feedback, constants.may_be_fed_back) == (biased, needs, may)
    assert str(constants) == words


def test_a_scaled_codec_contracts():
    """With E C(v) = v and E |C(v)|² = (1 + ω) |v|², E |C(v) / (1 + ω) - v|² is ω / (1 + ω) of |v|²."""
    assert contraction_of_scaled(0.0) == 1.0
    assert contraction_of_scaled(99.0) == pytest.approx(0.01)
    with pytest.raises(ConfigError, match="variance is -1"):
        contraction_of_scaled(-1.0)
