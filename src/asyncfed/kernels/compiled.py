"""How every kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Machine code, made at the first call and kept on disk; it releases the interpreter lock.

    Without fast-math: sums keep their written order, so the bytes do not depend on the processor's vector width.
    """
    return cast(Kernel, njit(cache=True, nogil=True)(function))
