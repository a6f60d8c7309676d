"""NormBounded: changes are shortened to what is usual, so that nobody speaks louder than others.

State: the last norms. Bytes beyond the model: none.

When to use it: with any strategy, also one that merges updates one by one. It stops scaled lies, and bounds what a
liar does with each update; a lie of ordinary length passes.

What goes wrong elsewhere: a fixed bound, which is too long late in training, or too short early; a mean of norms as the
bound, which one liar sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge
from asyncfed.kernels.merge_workspace import merge_threads
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule
from asyncfed.rules.recent_numbers import RecentNumbers, quantile_of
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix
from asyncfed.uplinks.norms import clip_to_norm, l2_norm


@register("rule")
class NormBounded(WrappingRule, Config, tag_field="kind", tag="norm_bounded"):
    """The server shortens each change to a multiple of what the last ones were long, before the wrapped rule sees it.

        model_i <- start_i + D_i min(1, C / |D_i|),     D_i = model_i - start_i
        C = factor * quantile(the last `window` norms, as they were accepted, and those of this merge)

    With the median, C stays within `factor` times an honest norm as long as more than half of the updates are honest,
    from the first merge on. Fewer than `needed` norms say too little: until so many are known, those of this merge
    among them, the model stays as it is (`too_few` in the journal), which costs a strategy that merges one by one its
    first updates. Changes of norm 0 say nothing about length and are not counted; one with a number that is not finite
    counts as no change. If some were shortened, the journal says how many (`shortened`), to what (`norm_bound`), and
    each one's norm (`shortened/<ticket>`).

    Args:
        rule: what sees the shortened arrivals; by default the weighted sum of the merge.
        quantile: above 0 and at most 1; liars of a larger share than 1 - quantile set the bound.
        factor: how many times the quantile a change may be long, above 0.
        window: how many norms are remembered, at least `needed`.
        needed: how many norms must be known, 1 or more. With 1, a liar that is first is not bounded.

    >>> NormBounded(quantile=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.quantile is 0.0; it must be above 0 and at most 1.

    Sun et al., "Can You Really Backdoor Federated Learning?", 2019 (a fixed bound); a quantile: Andrew et al.,
    "Differentially Private Learning with Adaptive Clipping", NeurIPS 2021.
    """

    rule: ServerRule = Mean()
    quantile: float = 0.5
    factor: float = 2.0
    window: int = 100
    needed: int = 5

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            raise ConfigError(f"rule.quantile is {self.quantile}; it must be above 0 and at most 1.")
        if not (isfinite(self.factor) and self.factor > 0):
            raise ConfigError(f"rule.factor is {self.factor}; it must be a positive number.")
        if not 1 <= self.needed <= self.window:
            raise ConfigError(
                f"rule.needed is {self.needed} and rule.window {self.window}; needed must be at least 1, and window at "
                "least as large."
            )

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No norms, and the wrapped rule's memory."""
        return {**RecentNumbers.init("norms", self.window), **super().init(params, num_clients)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's, from shortened arrivals."""
        recent = RecentNumbers(memory, "norms")
        norms = [_norm(arrival) for arrival in arrivals]
        lengths = [norm for norm in norms if 0 < norm < np.inf]
        known = np.concatenate([recent.known(), lengths])
        if known.size < self.needed:
            recent.add(lengths)
            return params, memory, {"too_few": int(known.size)}
        bound = self.factor * quantile_of(known, self.quantile)
        recent.add([min(norm, bound) for norm in lengths])
        within = [_shorten(arrival, norm, bound) for arrival, norm in zip(arrivals, norms, strict=True)]
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, within, merge, key)
        kept = {name: memory[name] for name in RecentNumbers.init("norms", 1)}
        return merged, {**kept, **with_prefix(wrapped)}, {**info, **_findings(arrivals, norms, bound)}


def _norm(arrival: Arrival) -> float:
    """The norm of the change, without making it where its square is no extreme number."""
    from asyncfed.kernels.distances import squared_distances  # loads numba

    square = float(squared_distances(arrival.model[None], arrival.start, merge_threads())[0])
    return sqrt(square) if 1e-280 < square < np.inf else l2_norm(arrival.change)


def _shorten(arrival: Arrival, norm: float, bound: float) -> Arrival:
    if norm <= bound:
        return arrival
    if not isfinite(norm):
        return arrival._replace(model=arrival.start)
    return arrival._replace(model=arrival.start + clip_to_norm(arrival.change, bound))


def _findings(arrivals: Sequence[Arrival], norms: Sequence[float], bound: float) -> dict[str, float]:
    """Whose changes were shortened, for the journal; a norm that is no number is written as the largest one."""
    largest, found = float(np.finfo(np.float64).max), {}
    for arrival, norm in zip(arrivals, norms, strict=True):
        if not norm <= bound:
            found[f"shortened/{arrival.ticket}"] = norm if isfinite(norm) else largest
    return {"shortened": len(found), "norm_bound": bound, **found} if found else {}
