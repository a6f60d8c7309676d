"""What theorems want to know of a codec C: how far C(v) is from v, and whether it is v in the mean.

    contraction δ in (0, 1]:   E |C(v) - v|² <= (1 - δ) |v|²
    variance ω >= 0:           E C(v) = v  and  E |C(v) - v|² <= ω |v|²

An unbiased codec with ω becomes one with δ = 1 / (1 + ω) if its messages are divided by 1 + ω; without that, δ = 1 - ω
where ω < 1. A biased codec can send SGD to a wrong point or away from any, and error feedback cures that: with it, SGD
on one machine needs as many steps as without compression, plus a number that grows with 1/δ and not with the accuracy.
Errors of unbiased codecs are independent between clients, so that a mean of n messages has ω / n.

These are theorems about compressed SGD. None of the bounds in `asyncfed.theory.bounds` covers compressed changes: of
local steps, staleness and compression together no bound is known here, and a certificate of such a run says so.

Karimireddy, Rebjock, Stich & Jaggi, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes", ICML 2019;
Beznosikov, Horváth, Richtárik & Safaryan, "On Biased Compression for Distributed Learning", JMLR 24, 2023.
"""

from __future__ import annotations

from typing import NamedTuple

from asyncfed.core.errors import ConfigError


class CodecConstants(NamedTuple):
    """The constants of a codec for a model of a given size.

    Args:
        contraction: δ; None if there is none above 0.
        variance: ω; None if the codec is biased.

    >>> CodecConstants(0.01, None).needs_error_feedback, CodecConstants(None, 99.0).needs_error_feedback
    (True, False)
    """

    contraction: float | None
    variance: float | None

    @property
    def biased(self) -> bool:
        """Whether the mean of its messages is not the change."""
        return self.variance is None

    @property
    def needs_error_feedback(self) -> bool:
        """Whether what it leaves out would be missing for ever."""
        return self.biased and self.contraction != 1.0

    @property
    def may_be_fed_back(self) -> bool:
        """Whether residuals stay bounded inside error feedback: they shrink by 1 - δ."""
        return self.contraction is not None

    def __str__(self) -> str:
        parts = [] if self.contraction is None else [f"δ = {near_one(self.contraction)}"]
        parts += ["biased"] if self.variance is None else [f"ω = {self.variance:.4g}"]
        return ", ".join(parts)


def near_one(share: float) -> str:
    """A number up to 1 in four digits; what is just below 1 as its distance from it.

    >>> near_one(0.25), near_one(1 - 2**-16), near_one(1.0)
    ('0.25', '1 - 1.5e-05', '1')
    """
    return f"1 - {1.0 - share:.2g}" if 0.9999 < share < 1.0 else f"{share:.4g}"


def contraction_of_scaled(variance: float) -> float:
    """δ of an unbiased codec with this ω, if its messages are divided by 1 + ω.

    >>> contraction_of_scaled(3.0)
    0.25
    """
    if variance < 0:
        raise ConfigError(f"variance is {variance}; it must be 0 or more.")
    return 1.0 / (1.0 + variance)
