"""The codecs of the study, by name: what clients do to their change before they send it."""

from __future__ import annotations

from typing import Literal

from asyncfed.core.record import Record
from asyncfed.uplinks import QSGD, Cast, ErrorFeedback, RandK, Sign, TopK, Uplink

NO_CODEC = "none"
"""The trained model, sent whole: what all others are compared with."""

SHARE = 0.01
"""The share of the entries that sparse codecs send."""

Group = Literal["uncompressed", "sparse", "quantised", "event-triggered"]


class Codec(Record):
    """A way of sending a change.

    Args:
        name: what it is called in the study.
        summary: a line about it, with its settings.
        group: of which kind it is.
        uplink: the uplinks of the work, in order.
    """

    name: str
    summary: str
    group: Group
    uplink: tuple[Uplink, ...] = ()


def _sparse() -> list[Codec]:
    top_k, rand_k = TopK(fraction=SHARE), RandK(fraction=SHARE)
    return [
        Codec("top_k", "the largest 1 % of the entries; the rest is forgotten", "sparse", (top_k,)),
        Codec("top_k_ef", "the largest 1 %, with error feedback", "sparse", (ErrorFeedback(codec=top_k),)),
        Codec(
            "top_k_bf16_ef",
            "the largest 1 %, rounded to bfloat16, with error feedback",
            "sparse",
            (ErrorFeedback(codec=TopK(fraction=SHARE, values="bfloat16")),),
        ),
        Codec("rand_k", "1 % of the entries at random, times 100: unbiased, no error feedback", "sparse", (rand_k,)),
        Codec(
            "rand_k_ef",
            "1 % of the entries at random, as they are, with error feedback",
            "sparse",
            (ErrorFeedback(codec=RandK(fraction=SHARE, scaled=False)),),
        ),
        Codec(
            "rand_k_scaled_ef",
            "a mistake: 1 % at random, times 100, inside error feedback",
            "sparse",
            (ErrorFeedback(codec=rand_k),),
        ),
    ]


def _quantised() -> list[Codec]:
    return [
        Codec("bf16", "every entry, rounded to bfloat16", "quantised", (Cast(to="bfloat16"),)),
        Codec("qsgd", "4 bits an entry: 7 levels of the norm of 128 entries, unbiased", "quantised", (QSGD(levels=7),)),
        Codec("sign", "1 bit an entry: its sign, times the mean size; no error feedback", "quantised", (Sign(),)),
        Codec("sign_ef", "1 bit an entry, with error feedback", "quantised", (ErrorFeedback(codec=Sign()),)),
    ]


CODECS: dict[str, Codec] = {
    codec.name: codec
    for codec in (Codec(NO_CODEC, "the trained model, whole", "uncompressed"), *_sparse(), *_quantised())
}
"""All codecs by name, in the order in which they are listed."""
