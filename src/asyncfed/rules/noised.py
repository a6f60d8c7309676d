"""Noised: Gaussian noise on every merge, against what a model tells about a single client."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix
from asyncfed.uplinks.norms import check_norm


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
        check_norm("rule.clip", self.clip)
        if not 0 <= self.multiplier < inf:
            raise ConfigError(f"rule.multiplier is {self.multiplier}; it must be 0 or a positive number.")
        if self.divisor < 1:
            raise ConfigError(f"rule.divisor is {self.divisor}; it must be at least 1: the size of the buffer.")

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: of single updates it uses who sent them."""
        return is_sum_only(self.rule)

    def check(self, work: Work) -> None:
        """Refuse changes that nobody clips, and rules that make something else than a weighted sum of them."""
        super().check(work)
        if work.start == "own":
            raise ConfigError(
                'strategy.rule adds noise to what is merged, but work.start is "own": each client goes on from its own '
                'model, which no noise has been added to. Use start = "server".'
            )
        bound: float | None = getattr(self.rule, "change_bound", None)
        if bound is None:
            raise ConfigError(
                f"strategy.rule adds noise to what {type(self.rule).__name__} makes of a merge, which is no weighted "
                "sum of changes, so that one client may move it by any amount. Noised goes inside of other rules."
            )
        sent = inf if work.uplink is UNSET else getattr(work.uplink[-1], "change_bound", inf)
        if min(bound, sent) > self.clip:
            raise ConfigError(
                f"strategy.rule adds noise for changes of norm {self.clip:g}, but nothing clips them to it. Set "
                f"work.uplink to end with Clip(norm={self.clip}), or wrap Clipped(norm={self.clip}) in Noised."
            )

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The weighted sum, and noise."""
        from asyncfed.kernels.noise_normals import noise_normals  # loads scipy

        self._check_merge(merge)
        clients = [a.client for a in arrivals]
        once = [a._replace(weight=a.weight / clients.count(a.client)) for a in arrivals]
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, once, merge, key)
        if self.multiplier:
            noise = self.multiplier * self.clip / self.divisor * noise_normals(key, params.size)
            merged = merged + noise.astype(params.dtype)
        return merged, with_prefix(wrapped), info

    def _check_merge(self, merge: Merge) -> None:
        if merge.of != "delta" or merge.keep != 1.0:
            raise ConfigError("strategy.rule adds noise for a sum of changes; use a strategy with such, as FedBuff is.")
        if min(merge.weights) < 0 or max(merge.weights) > (1.0 + 1e-12) / self.divisor:
            raise ConfigError(
                f"strategy.rule adds noise for weights from 0 to 1/{self.divisor}, but a merge has {merge.weights}. "
                "Set divisor to the buffer's size, and server_lr to 1 or less."
            )
