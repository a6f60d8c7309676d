"""How a strategy is called in titles, legends and tables."""

from __future__ import annotations

from typing import Any


def strategy_label(plain: dict[str, Any]) -> str:
    """A strategy's kind, the setting in which its variants differ, and the rule it is combined with.

    >>> strategy_label({"kind": "afl", "aggregate": "mixing"}), strategy_label({"kind": "fedavg"})
    ('afl (mixing)', 'fedavg')
    >>> strategy_label({"kind": "fedasync", "rule": {"kind": "scaffold"}})
    'fedasync + scaffold'
    """
    reading, rule = plain.get("aggregate", plain.get("mode")), plain.get("rule")
    kind = str(plain.get("kind", "custom strategy"))
    named = f"{kind} ({reading})" if reading else kind
    return f"{named} + {rule['kind']}" if isinstance(rule, dict) and "kind" in rule else named
