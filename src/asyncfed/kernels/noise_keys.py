"""Keys that noise is drawn from: of 64 bits, which a seed gives, or secret, which only one machine knows."""

from __future__ import annotations

SECRET_BITS = 256
"""How many random bits a secret key has."""

_MARK = 1 << SECRET_BITS
"""Says that a key is secret, whatever its random bits are."""


def secret_key(bits: int) -> int:
    """The secret key of these random bits, from 0 to 2**256 - 1: a number that no keyed draw can give.

    >>> secret_key(5) == 2**256 + 5
    True
    """
    if not 0 <= bits < _MARK:
        raise ValueError(f"a secret key has {SECRET_BITS} random bits, and {bits} does not fit")
    return _MARK | bits


def is_secret(key: int) -> bool:
    """Whether noise from this key is to be drawn with a cryptographic generator."""
    return key >= _MARK


def secret_bytes(key: int) -> bytes:
    """The random bits of a secret key, as 32 bytes."""
    return (key ^ _MARK).to_bytes(SECRET_BITS // 8, "big")


def write_key(key: int) -> int | str:
    """A key as a journal holds it: a secret one as 64 hexadecimal digits, since JSON's numbers end at 64 bits.

    >>> write_key(7), write_key(secret_key(7))[-4:]
    (7, '0007')
    """
    return secret_bytes(key).hex() if is_secret(key) else key


def read_key(written: object) -> int:
    """The inverse of `write_key`. Raises ValueError for what is no key.

    >>> read_key(write_key(secret_key(7))) == secret_key(7)
    True
    """
    if isinstance(written, str) and len(written) == SECRET_BITS // 4:
        return secret_key(int.from_bytes(bytes.fromhex(written), "big"))
    if type(written) is int and 0 <= written < 1 << 64:
        return written
    raise ValueError(f"{written!r:.80} is no key of noise")
