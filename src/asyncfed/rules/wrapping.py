"""What rules that wrap another one share: its checks, its memory, what it sends and measures."""

from __future__ import annotations

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.rules.protocol import Arrays, Arrival, Probe, Rule, ServerRule, check_merge, trains_on, upload_size

PREFIX = "wrapped/"
"""How the names of the wrapped rule's arrays begin in the memory of the rule around it."""


class WrappingRule(Rule):
    """A rule around `rule`, which it leaves to check, send and measure.

    It has no theorem: the wrapped rule's speaks of that rule alone. Its own arrays have other names in the memory than
    the wrapped rule's, which begin with `wrapped/`.
    """

    __slots__ = ()
    rule: ServerRule

    @property
    def draws_noise(self) -> bool:
        """Whether the wrapped rule does."""
        return self.rule.draws_noise

    @property
    def trains_on(self) -> int | None:
        """What the wrapped rule does."""
        return trains_on(self.rule)

    def upload_size(self, num_params: int, num_clients: int) -> int | None:
        """What the wrapped rule says."""
        return upload_size(self.rule, num_params, num_clients)

    def check(self, work: Work) -> None:
        """Refuse what the wrapped rule refuses."""
        self.rule.check(work)

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse merges of fewer updates than the wrapped rule needs."""
        check_merge(self.rule, merged_at_once, num_clients)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """The wrapped rule's memory."""
        return with_prefix(self.rule.init(params, num_clients))

    def send(self, memory: Arrays, client: int) -> Arrays:
        """What the wrapped rule sends."""
        return self.rule.send(without_prefix(memory), client)

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """What the wrapped rule measures."""
        return self.rule.measure(without_prefix(memory), params, arrival, probe)


def refuse_second_sender(name: str, rule: ServerRule, memory: Arrays) -> None:
    """Refuse a wrapped rule that sends a vector to clients, as the rule around it does.

    Args:
        name: of the rule around it.
        rule: the wrapped rule.
        memory: the memory of both at the start.
    """
    if rule.send(without_prefix(memory), 0):
        raise ConfigError(
            f"rule.rule is {type(rule).__name__}, which sends a vector to clients, as {name} does: there is one place "
            "for it. Use one of the two."
        )


def with_prefix(memory: Arrays, prefix: str = PREFIX) -> Arrays:
    """The arrays under names that begin with the prefix."""
    return {prefix + name: array for name, array in memory.items()}


def without_prefix(memory: Arrays, prefix: str = PREFIX) -> Arrays:
    """The arrays whose names begin with the prefix, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in memory.items() if name.startswith(prefix)}
