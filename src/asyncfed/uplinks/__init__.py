"""Uplinks: what a client does to its change before it sends it (clip, compress, keep what was left out)."""

from asyncfed.core.types import Uplink
from asyncfed.uplinks.cast import Cast
from asyncfed.uplinks.clip import Clip
from asyncfed.uplinks.codec import Codec
from asyncfed.uplinks.ef21 import EF21
from asyncfed.uplinks.error_feedback import ErrorFeedback
from asyncfed.uplinks.local_noise import LocalNoise
from asyncfed.uplinks.low_rank import LowRank
from asyncfed.uplinks.qsgd import QSGD
from asyncfed.uplinks.rand_k import RandK
from asyncfed.uplinks.send_if import SendIf
from asyncfed.uplinks.sign import Sign
from asyncfed.uplinks.top_k import TopK
from asyncfed.uplinks.whole import Whole
from asyncfed.uplinks.zstandard import Zstandard

__all__ = [
    "EF21",
    "QSGD",
    "Cast",
    "Clip",
    "Codec",
    "ErrorFeedback",
    "LocalNoise",
    "LowRank",
    "RandK",
    "SendIf",
    "Sign",
    "TopK",
    "Uplink",
    "Whole",
    "Zstandard",
]
