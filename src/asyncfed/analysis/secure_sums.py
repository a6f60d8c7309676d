"""What simulated secure sums did to a run: groups that were lost, sums that wrapped around; from its journal alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from asyncfed.core.record import UNSET
from asyncfed.rules.secure_aggregation import SecureAggregation
from asyncfed.store.events import Event
from asyncfed.store.schema import MERGE


class SecureSums(NamedTuple):
    """Counts over a run.

    Args:
        merges: how many groups were merged, or were to be.
        lost: how many of them could not be unmasked.
        dropped_out: how many members dropped out, of all groups.
        saturated: in how many merges entries of changes were cut off.
        wrapped: in how many merges entries of the sum wrapped around.
    """

    merges: int
    lost: int
    dropped_out: int
    saturated: int
    wrapped: int


def count_secure_sums(events: Iterable[Event]) -> SecureSums:
    """What the merges of a run say about their sums.

    Args:
        events: all events of the run.
    """
    found = [event.info for event in events if event.kind == MERGE]
    return SecureSums(
        merges=len(found),
        lost=sum("group_lost" in info for info in found),
        dropped_out=sum(int(info.get("dropped_out", 0)) for info in found),
        saturated=sum("saturated" in info for info in found),
        wrapped=sum("wrapped" in info for info in found),
    )


def secure_sum_lines(sums: SecureSums, settings: SecureAggregation) -> list[str]:
    """The counts in words, and what to do about those that cost accuracy.

    >>> for line in secure_sum_lines(SecureSums(9, 1, 4, 0, 2), SecureAggregation(bits=8, fraction_bits=12)):
    ...     print(line)
    secure aggregation (simulated, nothing is hidden): 1 of 9 merges lost, 4 members dropped out
    sums of 2 merges wrapped around, so that the model is wrong: 8 bits are too few for 12 fraction bits. Raise \
secure_aggregation.bits, or leave fraction_bits out
    """
    lost, dropped = f"{sums.lost} of {sums.merges} merges lost", f"{sums.dropped_out} members dropped out"
    lines = [f"secure aggregation (simulated, nothing is hidden): {lost}, {dropped}"]
    if sums.wrapped and settings.fraction_bits is not UNSET:
        lines.append(
            f"sums of {sums.wrapped} merges wrapped around, so that the model is wrong: {settings.bits} bits are too "
            f"few for {settings.fraction_bits} fraction bits. Raise secure_aggregation.bits, or leave fraction_bits out"
        )
    if sums.saturated:
        lines.append(
            f"in {sums.saturated} merges entries of changes were cut off at secure_aggregation.limit, "
            f"{settings.limit:g}: raise it if that is not wanted"
        )
    return lines
