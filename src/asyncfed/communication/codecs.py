"""The codecs of the study, by name: what clients do to their change before they send it."""

from __future__ import annotations

from typing import Any, Literal

from asyncfed.core.record import Record
from asyncfed.uplinks import EF21, QSGD, Cast, ErrorFeedback, LowRank, RandK, SendIf, Sign, TopK

NO_CODEC = "none"
"""The trained model, sent whole: what all others are compared with."""

SHARE = 0.01
"""The share of the entries that sparse codecs send."""

THRESHOLD = 3.0
"""Of event-triggered sending: how many times the mean length of a client's changes is long enough."""

Group = Literal["uncompressed", "sparse", "quantised", "event-triggered"]


class Codec(Record):
    """A way of sending a change.

    Args:
        name: what it is called in the study.
        summary: a line about it, with its settings.
        group: of which kind it is.
        uplink: the uplinks of the work, in order; of any type, since `SendIf` and `EF21` take one argument more
            than the protocol of an uplink says.
        sends: about which share of the trainings is sent; a run is given up after so much fewer merged updates.
        problems: the problems that it is for; empty for all.
    """

    name: str
    summary: str
    group: Group
    uplink: tuple[Any, ...] = ()
    sends: float = 1.0
    problems: tuple[str, ...] = ()

    def fits(self, problem: str) -> bool:
        """Whether it is for this problem."""
        return not self.problems or problem in self.problems


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
        Codec(
            "ef21",
            "the largest 1 % of what the server's estimate of the change lacks (EF21)",
            "sparse",
            (EF21(codec=top_k),),
        ),
        Codec(
            "low_rank_ef",
            "matrices and kernels as products of rank 1, with error feedback",
            "sparse",
            (ErrorFeedback(codec=LowRank(rank=1)),),
            problems=("digits",),
        ),
    ]


def _quantised() -> list[Codec]:
    return [
        Codec("bf16", "every entry, rounded to bfloat16", "quantised", (Cast(to="bfloat16"),)),
        Codec("qsgd", "4 bits an entry: 7 levels of the norm of 128 entries, unbiased", "quantised", (QSGD(levels=7),)),
        Codec("sign", "1 bit an entry: its sign, times the mean size; no error feedback", "quantised", (Sign(),)),
        Codec("sign_ef", "1 bit an entry, with error feedback", "quantised", (ErrorFeedback(codec=Sign()),)),
    ]


def _event_triggered() -> list[Codec]:
    return [
        Codec(
            "send_if",
            f"the change, whole, once it is {THRESHOLD:g} times as long as its changes are, or kept 4 times",
            "event-triggered",
            (SendIf(threshold=THRESHOLD, at_most=4),),
            sends=0.25,
        ),
    ]


def _codecs() -> list[Codec]:
    return [Codec(NO_CODEC, "the trained model, whole", "uncompressed"), *_sparse(), *_quantised(), *_event_triggered()]


CODECS: dict[str, Codec] = {codec.name: codec for codec in _codecs()}
"""All codecs by name, in the order in which they are listed."""
