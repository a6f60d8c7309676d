"""The compiled loop's record of numbers, read and written by name from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncfed.kernels.arrival_loop import STATE

_CODES = {"i": "q", "f": "d", "u": "Q"}


class LoopState:
    """One record of `kernels.arrival_loop.STATE`, whose fields are attributes: `state.version += 1`.

    `record` is what the loop is given. Fields are read through views of its memory, which give Python's own numbers and
    take a tenth of the time of numpy's records: at the end of every round some fifty are.
    """

    def __init__(self) -> None:
        self.record = np.zeros(1, STATE)
        memory: Any = self.record.view(np.uint8).data
        self._views = {kind: memory.cast(code) for kind, code in _CODES.items()}

    if TYPE_CHECKING:  # the fields, which are made below

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def _field(kind: str, place: int) -> property:
    def read(state: LoopState) -> Any:
        return state._views[kind][place]

    def write(state: LoopState, value: Any) -> None:
        state._views[kind][place] = value

    return property(read, write)


for _name, _place in (STATE.fields or {}).items():
    setattr(LoopState, _name, _field(_place[0].kind, _place[1] // 8))
