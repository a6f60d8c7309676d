"""Codec: an uplink without a memory that says how far its messages are from the change, in the terms of theorems."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from asyncfed.core.types import Uplink


@runtime_checkable
class Codec(Uplink, Protocol):
    """An uplink that knows its constants. All means are over its key; C(v) is what the server decodes.

    | method | answers with |
    |---|---|
    | `contraction(num_params)` | δ in (0, 1]: E \\|C(v) - v\\|² <= (1 - δ) \\|v\\|² for all v; None: there is none |
    | `variance(num_params)` | ω: E C(v) = v and E \\|C(v) - v\\|² <= ω \\|v\\|² for all v; None: it is biased |

    Error feedback asks for a δ; averaging over clients asks for an ω.
    """

    def contraction(self, num_params: int) -> float | None: ...
    def variance(self, num_params: int) -> float | None: ...
