"""Refusing work that a rule's formula does not hold for."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work


def refuse_settings(rule: str, work: Work, **reasons: str) -> None:
    """Raise a `ConfigError` if the work has one of these settings, other than by default.

    Args:
        rule: the rule's name, for the message.
        work: what clients are to be asked to do.
        reasons: by the name of the setting, why the rule cannot do with it.

    >>> refuse_settings("SCAFFOLD", Work(proximal=0.1), proximal="its variates are those of plain SGD")
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: work.proximal is 0.1, which the rule SCAFFOLD cannot be used with: its variates \
are those of plain SGD. Leave work.proximal out, or use another rule.
    """
    usual = Work()
    for name, reason in reasons.items():
        value = getattr(work, name)
        if value != getattr(usual, name):
            raise ConfigError(
                f"work.{name} is {value}, which the rule {rule} cannot be used with: {reason}. "
                f"Leave work.{name} out, or use another rule."
            )
