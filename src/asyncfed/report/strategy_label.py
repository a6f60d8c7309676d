"""How a strategy is called in titles, legends and tables."""

from __future__ import annotations

from typing import Any


def strategy_label(plain: dict[str, Any]) -> str:
    """A strategy's kind, and the setting in which its variants differ.

    >>> strategy_label({"kind": "afl", "aggregate": "mixing"}), strategy_label({"kind": "fedavg"})
    ('afl (mixing)', 'fedavg')
    """
    reading = plain.get("aggregate", plain.get("mode"))
    kind = str(plain.get("kind", "custom strategy"))
    return f"{kind} ({reading})" if reading else kind
