"""TreeNoised: noise on prefix sums of merges, which grows with the logarithm of their number (DP-FTRL)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.clipped_sums import check_clipped_sum, check_noise_settings, check_sum_weights, count_clients_once
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, ServerRule, is_sum_only
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix

KEY_WORDS = 5
"""A key in words of 64 bits: secret keys have 256 bits and a mark."""


@register("rule")
class TreeNoised(WrappingRule, Config, tag_field="kind", tag="tree_noised"):
    """Gaussian noise on the sum of all merges so far, made of nodes that later sums share.

        x_t - x_0 = (1/K) (sum of all s_i change_i up to merge t  +  z C sum over nodes of N_node)

    The nodes of t are those of its binary digits: 13 = 8 + 4 + 1 has one of the first 8 merges, one of the next 4, one
    of the last. Each has a vector N_node ~ N(0, I) of its own, drawn from the key of the merge that completes it. Merge
    t adds the node of 2^h merges that it completes, h the zeros at the end of t, and takes back the h nodes in it. So
    the noise of x_t - x_0 has the variance (z C / K)^2 times the number of ones in t, at most log2(T) + 1, where
    `Noised` has t. How much of a client that hides: `asyncfed.privacy.tree`.

    The memory is the number of merges and the keys of the present nodes, so that a resumed run takes back exactly what
    it had added. What must hold of changes, weights and participation is as with `Noised`; besides, each client may
    take part only so often and with so many merges between, which this rule does not know: see `ParticipationCaps`.

    Args:
        clip: C, above 0: the longest change.
        multiplier: z, 0 (no noise, no protection) or more.
        divisor: K, 1 or more: the buffer's size.
        releases: T, 1 or more: how many merges there may be.
        rule: the weighted sum; `Mean()`, or `Clipped(norm=C)`.

    >>> TreeNoised(clip=0.5, multiplier=1.0, divisor=10, releases=100).draws_noise
    True

    Kairouz et al., "Practical and Private (Deep) Learning without Sampling or Shuffling", ICML 2021.
    """

    clip: float
    multiplier: float
    divisor: int
    releases: int
    rule: ServerRule = Mean()
    draws_noise = True

    def __post_init__(self) -> None:
        check_noise_settings(self.clip, self.multiplier, self.divisor)
        if self.releases < 1:
            raise ConfigError(f"rule.releases is {self.releases}; a tree has at least 1 release.")

    @property
    def sum_only(self) -> bool:
        """Whether the wrapped rule is: of single updates it uses who sent them."""
        return is_sum_only(self.rule)

    def check(self, work: Work) -> None:
        """Refuse changes that nobody clips, and rules that make something else than a weighted sum of them."""
        super().check(work)
        check_clipped_sum(self.rule, self.clip, work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No merges and no nodes; the wrapped rule's memory."""
        keys = np.zeros((self.releases.bit_length(), KEY_WORDS), np.uint64)
        return {"merges": np.zeros(1, np.int64), "keys": keys, **super().init(params, num_clients)}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The weighted sum, the noise of the node that it completes, and what that node replaces taken back."""
        check_sum_weights(merge, self.divisor)
        number = int(memory["merges"][0]) + 1
        if number > self.releases:
            raise ConfigError(
                f"strategy.rule has a tree of {self.releases} releases, and this is merge {number}. Set rule.releases "
                "to the number of merges of the whole run."
            )
        once = count_clients_once(arrivals)
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, once, merge, key)
        height = (number & -number).bit_length() - 1
        if self.multiplier:
            noise = node_noise(key, params.size)
            for inner in memory["keys"][:height]:
                noise -= node_noise(join_words(inner), params.size)
            merged = merged + (self.multiplier * self.clip / self.divisor * noise).astype(params.dtype)
        keys = memory["keys"].copy()
        keys[height] = split_key(key)
        return merged, {"merges": np.array([number]), "keys": keys, **with_prefix(wrapped)}, info


def node_noise(key: int, num_params: int) -> np.ndarray:
    """The noise of a node: standard normal numbers from its key."""
    from asyncfed.kernels.noise_normals import noise_normals  # loads scipy

    return noise_normals(key, num_params)


def split_key(key: int) -> np.ndarray:
    """A key in words of 64 bits, lowest first.

    >>> join_words(split_key(2**256 + 7)) == 2**256 + 7
    True
    """
    return np.array([key >> 64 * place & (2**64 - 1) for place in range(KEY_WORDS)], np.uint64)


def join_words(words: np.ndarray) -> int:
    """The inverse of `split_key`."""
    return sum(int(word) << 64 * place for place, word in enumerate(words))
