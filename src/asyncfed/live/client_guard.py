"""LeastNoise: what a client insists on before it trains, whatever its server asks for."""

from __future__ import annotations

from math import inf

from asyncfed.core.errors import AsyncFedError, ConfigError
from asyncfed.core.record import UNSET, Config
from asyncfed.core.types import Work
from asyncfed.problems.client_measurements import MEASUREMENTS
from asyncfed.uplinks.local_noise import LocalNoise

SMALLEST_CLIP, LARGEST_CLIP = 1e-30, 1e30
"""Within these, noise and change are rounded like ordinary numbers. Near the smallest float noise could round to 0."""


class RefusedTask(AsyncFedError):
    """The server asked for more than the client's own limits allow. The client has trained nothing."""


class LeastNoise(Config):
    """A client's own limits: the least noise it adds to an upload, and how many uploads it makes.

    In the mode `local`, noise and uploads are what the tickets of the server ask for. A client with these limits
    refuses a task that asks for less noise or for another upload, so that, whatever the server does,

        mu <= sqrt(uploads) / multiplier

    The clip C is the server's choice: the change is at most C long and the standard deviation of the noise is z C, so
    that what is learnt of the client depends on z alone. Also refused is work that tells something without noise:
    measurements, `patience` and `start = "own"`. Uplinks after the noise see the noised change only.

    Args:
        multiplier: the least z, the noise of an upload in clips; above 0.
        uploads: how many tasks the client accepts at most, whether their uploads arrive or not; 1 or more.

    >>> LeastNoise(multiplier=2.0, uploads=10).check_work(Work(uplink=(LocalNoise(clip=0.5, multiplier=2.5),)))
    >>> LeastNoise(multiplier=2.0, uploads=10).check_work(Work(uplink=(LocalNoise(clip=0.5, multiplier=0.1),)))
    Traceback (most recent call last):
    asyncfed.live.client_guard.RefusedTask: The server asks for noise of 0.1 clips; this client adds 2 at least. Ask \
the server's operator for privacy.multiplier = 2 or more.
    """

    multiplier: float
    uploads: int

    def __post_init__(self) -> None:
        if not 0 < self.multiplier < inf:
            raise ConfigError(f"The client's least noise is {self.multiplier}; it must be a positive number.")
        if self.uploads < 1:
            raise ConfigError(f"The client's most uploads are {self.uploads}; they must be 1 or more.")

    def check_work(self, work: Work) -> None:
        """Refuse work that sends anything about the client's data with less noise than this."""
        noise = None if work.uplink is UNSET else work.uplink[0]
        if not isinstance(noise, LocalNoise):
            what = "nothing" if noise is None else type(noise).__name__
            raise RefusedTask(
                f"The server asks for an upload whose first uplink is {what}; this client's must be LocalNoise. Ask "
                'the server\'s operator for privacy.kind = "local".'
            )
        if noise.multiplier < self.multiplier:
            raise RefusedTask(
                f"The server asks for noise of {noise.multiplier:g} clips; this client adds {self.multiplier:g} at "
                f"least. Ask the server's operator for privacy.multiplier = {self.multiplier:g} or more."
            )
        if not SMALLEST_CLIP <= noise.clip <= LARGEST_CLIP:
            raise RefusedTask(
                f"The server asks for a clip of {noise.clip:g}; this client takes {SMALLEST_CLIP:g} to "
                f"{LARGEST_CLIP:g}, where noise is not lost in rounding. Ask the server's operator for another "
                "privacy.clip."
            )
        asked = [f"work.{name}" for name in MEASUREMENTS if getattr(work, name) is True]
        asked += [] if work.patience is UNSET else ["work.patience"]
        asked += ['work.start = "own"'] if work.start == "own" else []
        if asked:
            raise RefusedTask(
                f"The server asks for {', '.join(asked)}, which tells something about this client's data without "
                "noise. Ask the server's operator to remove it."
            )

    def check_uploads(self, made: int) -> None:
        """Refuse another upload after so many."""
        if made >= self.uploads:
            raise RefusedTask(
                f"The server asks for upload {made + 1} of this client, which makes {self.uploads} at most. Whoever "
                "allows more loses more privacy: see `asyncfed privacy plan --mode local`."
            )
