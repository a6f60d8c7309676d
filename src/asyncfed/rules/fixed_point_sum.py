"""FixedPointSum: a rule that is shown nothing of a merge but a sum in whole numbers, modulo a power of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import draw_key, purpose_key, unit
from asyncfed.core.record import UNSET, Config, UnsetType, replace
from asyncfed.core.types import Merge, Work
from asyncfed.kernels.fixed_point import count_wrapped, sum_modulo, whole_multiples
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.secure_aggregation import SecureAggregation
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix
from asyncfed.uplinks.norms import clip_to_norm

NOBODY = -1
"""Whose the one arrival is that the wrapped rule sees."""


@register("rule")
class FixedPointSum(WrappingRule, Config, tag_field="kind", tag="fixed_point_sum"):
    """The wrapped rule sees one arrival in place of a group's: the sum of its weighted changes in fixed point.

        S = 2^-f ((sum_i round(2^f weight_i clip(change_i))) mod 2^bits);     x <- rule(x, S)

    A merge of models is made of their changes and of sum_i weight_i start_i, which the server knows. A member that
    drops out counts as no change, a group that cannot be unmasked as if nobody had changed anything. An entry that is
    no number is sent as 0, and counted as saturated. Put in by `Experiment.secure_aggregation`, in place of the
    innermost `Mean()`, so that optimisers and noise come after the sum.

    Args:
        settings: the arithmetic, the drop-outs and the bytes.
        members: how many updates make a group, 2 or more; left out, as many as there are clients. Only bytes depend on
            it.
        rule: what is made of the sum; by default it is added.

    >>> FixedPointSum(settings=SecureAggregation(bits=16), members=10).upload_size(num_params=100, num_clients=50)
    1160

    Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017.
    """

    settings: SecureAggregation = SecureAggregation()
    members: int | UnsetType = UNSET
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if self.members is not UNSET and self.members < 2:
            raise ConfigError(f"rule.members is {self.members}; a sum of fewer than 2 updates hides nothing.")

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: it sees the sum, but may need more."""
        return is_sum_only(self.rule)

    @property
    def change_bound(self) -> float | None:
        """How long a change may be in the sum, where rounding lengthens none and nothing can wrap around."""
        inner: float | None = getattr(self.rule, "change_bound", None)
        own = self.settings.change_bound
        return None if inner is None or own is None else min(inner, own)

    def upload_size(self, num_params: int, num_clients: int) -> int:
        """The bytes of an upload under the protocol that is simulated."""
        return self.settings.upload_size(num_params, num_clients if self.members is UNSET else self.members)

    def check(self, work: Work) -> None:
        """Refuse starts that the server does not know, and messages that are not whole changes."""
        super().check(work)
        if work.start == "own":
            raise ConfigError(
                'secure_aggregation needs work.start = "server", and it is "own": the server knows the sum of changes '
                "only, and has to know what they are changes of."
            )
        for uplink in () if work.uplink is UNSET else work.uplink:
            if not getattr(uplink, "sends_whole", False):
                raise ConfigError(
                    f"secure_aggregation adds up whole vectors, and work.uplink has {type(uplink).__name__}, whose "
                    "messages are something else: sums of masked ones would mean nothing. Leave it out; to save "
                    "bytes, lower secure_aggregation.bits."
                )

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse merges of one update, and groups that the bits are too few for."""
        super().check_merge(merged_at_once, num_clients)
        if merged_at_once < 2:
            raise ConfigError(
                f"secure_aggregation needs merges of at least 2 updates, and the strategy makes one of "
                f"{merged_at_once}: a sum of one is that one. Use a buffer or a cohort, such as fedbuff."
            )
        self.settings.fraction_bits_for(1.0, merged_at_once)

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's step along the decoded sum."""
        settings = self.settings
        drop_key = purpose_key(key, "secure aggregation: drop out")
        left = [a for a in arrivals if unit(draw_key(drop_key, a.client, a.ticket)) >= settings.dropout]
        lost = len(left) < settings.threshold * len(arrivals) or len({a.client for a in left}) < 2
        change, info = self._sum([] if lost else left, arrivals, params.size, key)
        if len(left) < len(arrivals):
            info["dropped_out"] = len(arrivals) - len(left)
        if lost:
            info["group_lost"] = 1
        base: Any = np.zeros(params.size)
        if merge.of == "model":
            starts = (a.weight * a.start.astype(np.float64) for a in arrivals)
            base = (1.0 - merge.keep) * params if lost else sum(starts, base)
        summed = arrivals[0]._replace(
            client=NOBODY,
            weight=1.0,
            staleness=max(a.staleness for a in arrivals),
            steps=max(a.steps for a in arrivals),
            num_examples=sum(a.num_examples for a in arrivals),
            start=base.astype(params.dtype),
            model=(base + change).astype(params.dtype),
            metrics=None,
        )
        alone = replace(merge, tickets=(summed.ticket,), weights=(1.0,))
        merged, wrapped, more = self.rule.step(without_prefix(memory), params, [summed], alone, key)
        return merged, with_prefix(wrapped), {**more, **info}

    def _sum(
        self, left: Sequence[Arrival], group: Sequence[Arrival], size: int, key: int
    ) -> tuple[np.ndarray, dict[str, float]]:
        """The decoded sum over those that are left, and how many of its entries are not what they should be."""
        from asyncfed.kernels.keyed_normals import keyed_uniforms  # loads scipy

        settings, wholes, saturated = self.settings, [], 0
        fraction_bits = settings.fraction_bits_for(sum(abs(a.weight) for a in group), len(group))
        rounding_key = purpose_key(key, "secure aggregation: rounding")
        for a in left:
            change = a.change.astype(np.float64)
            if settings.norm is not UNSET:
                change = clip_to_norm(change, settings.norm)
            sent = np.clip(np.nan_to_num(change, nan=0.0), -settings.limit, settings.limit)
            saturated += int(np.count_nonzero(sent != change))
            drawn = settings.rounding == "stochastic"
            uniforms = keyed_uniforms(draw_key(rounding_key, a.client, a.ticket), size) if drawn else 0.5
            wholes.append(whole_multiples(a.weight * sent, fraction_bits, settings.rounding, uniforms))
        decoded = sum_modulo(wholes, size, settings.bits)
        wrapped = count_wrapped(wholes, decoded, settings.bits)
        found = {"saturated": saturated, "wrapped": wrapped}
        return np.ldexp(decoded.astype(np.float64), -fraction_bits), {name: n for name, n in found.items() if n}
