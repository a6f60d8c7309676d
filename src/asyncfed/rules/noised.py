"""Noised: Gaussian noise on every merge, against what a model tells about a single client."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.clipped_sums import check_clipped_sum, check_noise_settings, check_sum_weights, count_clients_once
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix


@register("rule")
class Noised(WrappingRule, Config, tag_field="kind", tag="noised"):
    """Gaussian noise N(0, (z C)^2), added once per merge to the sum of K clipped changes: the Gaussian mechanism.

        x <- x + (1/K) (sum_i s_i change_i + z C N(0, I)),     |change_i| <= C,  0 <= s_i <= 1

    A client then moves a merge by at most C/K, and the merge hides it as a Gaussian mechanism of noise multiplier z
    does; over P merges that is z / sqrt(P), with no amplification by sampling, since whoever arrives takes part. That
    holds only if

    - each change is clipped to C first, by the uplink `Clip` or by `Clipped` inside this rule: anything else is refused
      before the run;
    - a merge adds changes with weights of at most 1/K, K fixed, as FedBuff's with server_lr of at most 1 does: models,
      and weights above 1/K, are refused at the merge. Discounts apply after clipping;
    - a client counts once per merge: if j updates of one are in it, each of them counts 1/j of its weight.

    Timing and participation are not protected, nor are measurements on the clients' data. In a live run the noise comes
    from the machine's entropy, by a cryptographic generator (`kernels.noise_normals`); its key is in the journal, for
    replay, so the journal must stay with the server. Wrap it to go on with what is released:
    `Optimised(rule=Noised(...))`.

    Args:
        clip: C, above 0: the longest change.
        multiplier: z, 0 (no noise, no protection) or more.
        divisor: K, 1 or more: the buffer's size.
        rule: the weighted sum; `Mean()`, or `Clipped(norm=C)`.

    >>> from asyncfed.uplinks import Clip
    >>> noised = Noised(clip=0.5, multiplier=1.0, divisor=10)
    >>> noised.check(Work(uplink=(Clip(norm=0.5),)))

    Dwork & Roth, "The Algorithmic Foundations of Differential Privacy", 2014; Nguyen et al., "Federated Learning with
    Buffered Asynchronous Aggregation", AISTATS 2022.
    """

    clip: float
    multiplier: float
    divisor: int
    rule: ServerRule = Mean()
    draws_noise = True

    def __post_init__(self) -> None:
        check_noise_settings(self.clip, self.multiplier, self.divisor)

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: of single updates it uses who sent them."""
        return is_sum_only(self.rule)

    def check(self, work: Work) -> None:
        """Refuse changes that nobody clips, and rules that make something else than a weighted sum of them."""
        super().check(work)
        check_clipped_sum(self.rule, self.clip, work)

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The weighted sum, and noise."""
        from asyncfed.kernels.noise_normals import noise_normals  # loads scipy

        check_sum_weights(merge, self.divisor)
        once = count_clients_once(arrivals)
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, once, merge, key)
        if self.multiplier:
            noise = self.multiplier * self.clip / self.divisor * noise_normals(key, params.size)
            merged = merged + noise.astype(params.dtype)
        return merged, with_prefix(wrapped), info
