"""Randomness as an argument: every draw is keyed, none is ambient.

A key is made from `(seed, purpose, client, ticket)`; a `Stream` reads numbers from a key. The generator is SplitMix64
(Steele, Lea & Flood, OOPSLA 2014), whose n-th output is a hash of `key + n * GOLDEN`: it has no hidden state, so a draw
depends on nothing but its key and its index, and it is short enough to be written identically here and in the kernels.
"""

from __future__ import annotations

from zlib import crc32

MASK = 0xFFFF_FFFF_FFFF_FFFF
GOLDEN = 0x9E37_79B9_7F4A_7C15
CLIENT_STEP = 0xD1B5_4A32_D192_ED03
TICKET_STEP = 0xAEF1_7502_108E_F2D9


def mix64(z: int) -> int:
    """SplitMix64's finaliser: a bijection of 64-bit words that scatters neighbours.

    >>> hex(mix64(0x9E3779B97F4A7C15))
    '0xe220a8397b1dcdaf'
    """
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
    return z ^ (z >> 31)


def purpose_key(seed: int, purpose: str) -> int:
    """The key of one purpose ("train", "delay", ...) under a seed. Compute it once, then use `draw_key`."""
    return mix64((mix64((seed + GOLDEN) & MASK) + crc32(purpose.encode()) * GOLDEN) & MASK)


def draw_key(purpose: int, client: int, ticket: int) -> int:
    """The key of one (client, ticket) under a purpose key. Use 0 for a client or ticket that does not matter."""
    # `mix64`, written out: a call would cost more than the arithmetic, and this is done several times per update.
    z = (purpose + client * CLIENT_STEP + ticket * TICKET_STEP) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
    return z ^ (z >> 31)


def unit(key: int) -> float:
    """The uniform number a key itself stands for, strictly between 0 and 1 (so that logarithms are safe).

    Use a key either for this or to start a `Stream`, not for both.
    """
    return ((key >> 12) + 0.5) * 2.0**-52


class Stream:
    """A sequence of draws read from one key.

    >>> stream = Stream(purpose_key(0, "example"))
    >>> [stream.below(10) for _ in range(3)] == [Stream(purpose_key(0, "example")).below(10)] * 3
    False
    """

    __slots__ = ("word",)

    def __init__(self, key: int) -> None:
        self.word = key

    def bits(self) -> int:
        """The next 64 bits: `mix64` of the next word, written out as in `draw_key`."""
        self.word = z = (self.word + GOLDEN) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
        return z ^ (z >> 31)

    def unit(self) -> float:
        """The next uniform number, strictly between 0 and 1."""
        return ((self.bits() >> 12) + 0.5) * 2.0**-52

    def below(self, n: int) -> int:
        """The next whole number in 0 … n-1 (multiply-shift of `bits`, written out: the bias is below n / 2**64)."""
        self.word = z = (self.word + GOLDEN) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & MASK
        return ((z ^ (z >> 31)) * n) >> 64

    def shuffle(self, items: list[int]) -> None:
        """Fisher-Yates, in place."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
