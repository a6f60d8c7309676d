"""The table of codecs: the bytes that messages have, and constants where they are known."""

import numpy as np
import pytest

from asyncfed.analysis.codec_table import _usual_codecs, codec_rows, describe_uplinks
from asyncfed.core.errors import ConfigError
from asyncfed.uplinks import Clip, ErrorFeedback, LowRank, RandK, TopK
from asyncfed.uplinks.chain import message_size


@pytest.mark.parametrize(("num_params", "dtype"), [(1, np.float32), (17, np.float64), (300, np.float32)])
def test_bytes_are_those_of_messages(num_params, dtype):
    change = np.linspace(-1.0, 1.0, num_params, dtype=dtype)
    rows = codec_rows(num_params, change.itemsize)
    sent = [message_size(codec.encode({}, change, 1)[0]) for codec in _usual_codecs(num_params)]
    assert [row.num_bytes for row in rows] == sent
    assert rows[0].times_fewer == 1.0


def test_a_model_without_parameters_is_refused():
    with pytest.raises(ConfigError, match="params is 0"):
        codec_rows(0)


@pytest.mark.parametrize(
    ("uplinks", "num_params", "words"),
    [
        ((TopK(fraction=0.5),), 10, "top_k: δ = 0.5, biased"),
        ((ErrorFeedback(codec=TopK(fraction=0.5)),), 10, "error_feedback of top_k: δ = 0.5, biased"),
        ((Clip(), RandK(fraction=0.25)), 8, "clip; rand_k: ω = 3"),
        ((TopK(fraction=0.5),), None, "top_k"),
        ((LowRank(),), 10, "low_rank"),
    ],
)
def test_uplinks_in_words(uplinks, num_params, words):
    assert describe_uplinks(uplinks, num_params) == words
