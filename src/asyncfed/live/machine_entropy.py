"""Keys of noise that nobody else can know: from the entropy of the machine that adds the noise."""

from __future__ import annotations

from secrets import randbits

from asyncfed.kernels.noise_keys import SECRET_BITS, secret_key


def draw_noise_key(version: int = 0) -> int:
    """A new secret key from the operating system, whatever it is for.

    Args:
        version: the version that the noise is for; no key depends on it.
    """
    return secret_key(randbits(SECRET_BITS))
