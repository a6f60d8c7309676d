"""Staleness-aware asynchronous SGD: a change that is tau versions old counts 1/tau.

Paper: Zhang, Gupta, Lian & Liu, "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016.

Rule: of J learners, the server takes c changes at a time (n-softsync with n = J/c groups),

    every c reports:  x = x + (1/c) sum_i (w_i - w_base,i) / max(1, tau_i)

By name c = 1: every change is added on arrival. It is FedBuff with another discount.

State: up to c updates. Bytes beyond the model: none.

When to use it: asynchronous SGD with the same data everywhere, tuned once for no delay: the step shrinks by itself as
more clients work at once. Clients that are always late count little, so with differing data the model leans to fast
ones.

What goes wrong elsewhere: dividing by tau + 1, which halves what is one version old; dividing by the mean staleness of
all instead of each change's own.

Confirmed: that the rate is divided by the staleness of each gradient, and n-softsync, by the abstract and a review;
that a fresh change and one of staleness 1 both count in full, from memory.
"""

from __future__ import annotations

from typing import ClassVar

from asyncfed.core.record import Config
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.fedbuff import FedBuff


@register("discount")
class InverseStaleness(Config, tag_field="kind", tag="inverse"):
    """The inverse discount: `s(tau) = 1 / max(1, tau)`.

    >>> [InverseStaleness().weight(tau) for tau in (0, 1, 2, 4)]
    [1.0, 1.0, 0.5, 0.25]

    Zhang, Gupta, Lian & Liu, "Staleness-aware Async-SGD for Distributed Deep Learning", IJCAI 2016.
    """

    known_ahead: ClassVar[bool] = True
    """Follows from the staleness alone: a simulator may ask for any staleness at any time."""

    def weight(self, staleness: int) -> float:
        """What an update of this staleness counts."""
        return 1.0 / max(1, staleness)


add_algorithm(
    Algorithm(
        name="staleness_aware",
        summary="staleness-aware SGD: a change that is tau versions old counts 1/tau",
        make=lambda tickets, work, rate: FedBuff(
            concurrency=tickets, buffer_size=1, discount=InverseStaleness(), work=work
        ),
        family="staleness",
        year=2015,
        timing="asynchronous",
        data="the same",
        evidence="review",
    ),
    __name__,
)
