"""How every kernel is compiled, and when a kernel that was compiled before may be used again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@cache
def source_stamp() -> str:
    """A hash of every file of this room: a kernel is made of more than the file it is in."""
    digest = sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(sha256(file.read_bytes()).digest())
    return digest.hexdigest()


class RoomCache(FunctionCache):  # type: ignore[misc]
    """numba's cache on disk, which looks at the function's own file, made to look at the whole room.

    numba's key has the argument types, the processor with its features, and the function's code; here it also has
    `source_stamp`, since what a kernel calls, emits or has as a constant may be written elsewhere.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), source_stamp())


def is_compiled(kernel: Any) -> bool:
    """Whether it was compiled before, from this text and for arguments of some types at least; here or on disk."""
    return bool(kernel.signatures) or any(source_stamp() in key for key in kernel._cache._cache_file._load_index())


def compiled(function: Kernel) -> Kernel:
    """Machine code, made at the first call and kept on disk; it releases the interpreter lock.

    Without fast-math: sums keep their written order, so the bytes do not depend on the processor's vector width.
    """
    kernel = njit(cache=True, nogil=True)(function)
    kernel._cache = RoomCache(function)
    return cast(Kernel, kernel)
