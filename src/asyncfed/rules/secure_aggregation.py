"""SecureAggregation: what a protocol for secure sums does to numbers, bytes and groups, as settings of a run.

Simulated only: no masks are made, and nothing is hidden from the server. See docs/threats.md.
"""

from __future__ import annotations

from math import floor, inf, log2

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, Config, UnsetType
from asyncfed.kernels.fixed_point import MOST_BITS, Rounding
from asyncfed.uplinks.norms import check_norm

BYTES_PER_MEMBER = 96
"""What a client uploads for each member of its group, beside its vector: in the protocol of Bonawitz et al. (2017) two
keys of its own, two encrypted shares for each other member, and one share of each when the sum is unmasked, 3 n values
of 32 bytes for a group of n. A model of the order of magnitude, not a measurement."""


class SecureAggregation(Config):
    """The numbers that a run has if the server sees nothing but sums, modulo 2**bits, of each merge's updates.

        q_i = round(2^f weight_i clip(change_i));    S = 2^-f ((sum_i q_i) mod 2^bits), read with a sign

    Each member of a group (the updates of one merge) clips its change, scales it by its weight, and rounds it to whole
    multiples of 2^-f; what is merged is S. This simulates a protocol's arithmetic, its bytes and its drop-outs, so that
    their cost can be seen before one is deployed. *It hides nothing*: no cryptography is done, in live runs neither.

    A member drops out with probability `dropout` after the group was formed, and counts as no change. A group of which
    less than `threshold` is left, or fewer than two clients, cannot be unmasked: its merge is lost, the model stays as
    it is. The journal says with each merge what happened: `saturated` entries, `wrapped` ones (which a server that sees
    sums only could not count), members that `dropped_out`, `group_lost`.

    Args:
        bits: of the modulus, 2 to 62.
        fraction_bits: f, -62 to 62; left out, the largest with which the sum cannot wrap around, found at each merge
            from `limit`, the weights and the size of the group.
        limit: the largest size of a change's entry, above 0; larger ones are cut off at it.
        norm: C, above 0: changes are shortened to this L2 norm first; left out, they are not.
        rounding: "nearest", "stochastic" (right on average) or "toward_zero" (which lengthens no change, so that noise
            for privacy still covers it).
        dropout: the probability that a member drops out, 0 to below 1.
        threshold: the share of a group that has to be left, 0 to 1.
        bytes_per_member: what keys and shares add to each upload for each member of the group, 0 or more; see
            `BYTES_PER_MEMBER`.

    >>> SecureAggregation(bits=8).fraction_bits_for(total_weight=1.0, members=10)
    6
    >>> SecureAggregation(bits=64)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: secure_aggregation.bits is 64; it must be from 2 to 62.

    Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017.
    """

    bits: int = 32
    fraction_bits: int | UnsetType = UNSET
    limit: float = 1.0
    norm: float | UnsetType = UNSET
    rounding: Rounding = "nearest"
    dropout: float = 0.0
    threshold: float = 2 / 3
    bytes_per_member: int = BYTES_PER_MEMBER

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= MOST_BITS:
            raise ConfigError(f"secure_aggregation.bits is {self.bits}; it must be from 2 to {MOST_BITS}.")
        if self.fraction_bits is not UNSET and not -MOST_BITS <= self.fraction_bits <= MOST_BITS:
            raise ConfigError(
                f"secure_aggregation.fraction_bits is {self.fraction_bits}; it must be from {-MOST_BITS} to "
                f"{MOST_BITS}, or left out for the most that cannot wrap around."
            )
        check_norm("secure_aggregation.limit", self.limit)
        if self.norm is not UNSET:
            check_norm("secure_aggregation.norm", self.norm)
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"secure_aggregation.dropout is {self.dropout}; it must be from 0 to below 1.")
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"secure_aggregation.threshold is {self.threshold}; it must be from 0 to 1.")
        if self.bytes_per_member < 0:
            raise ConfigError(f"secure_aggregation.bytes_per_member is {self.bytes_per_member}; it must be 0 or more.")

    @property
    def change_bound(self) -> float | None:
        """How long a change may be in the sum; None if rounding may lengthen it, or the sum wrap around."""
        if self.rounding != "toward_zero" or self.fraction_bits is not UNSET:
            return None
        return inf if self.norm is UNSET else self.norm

    def fraction_bits_for(self, total_weight: float, members: int) -> int:
        """f for a group whose weights' sizes add up to `total_weight`; ConfigError if there are too few bits."""
        if self.fraction_bits is not UNSET:
            return self.fraction_bits
        room = 2 ** (self.bits - 1) - 1 - (0 if self.rounding == "toward_zero" else members)
        if room < 1:
            raise ConfigError(
                f"secure_aggregation.bits is {self.bits}, too few for a group of {members}: rounding alone could make "
                f"their sum wrap around. Set it to at least {members.bit_length() + 2}."
            )
        bound = self.limit * total_weight
        if bound == 0.0:
            return 0
        bits = floor(log2(room) - log2(bound))
        return bits if bound * 2.0**bits <= room else bits - 1  # the logarithms are rounded

    def upload_size(self, num_params: int, members: int) -> int:
        """Bytes of an upload: so many bits for each parameter, packed, and what keys and shares add.

        >>> SecureAggregation(bits=12).upload_size(num_params=1000, members=10)
        2460
        """
        return -(-num_params * self.bits // 8) + self.bytes_per_member * members
