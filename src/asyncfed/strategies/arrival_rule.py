"""What a strategy decides on arrivals, as numbers: for simulators that decide ahead in a compiled loop.

A strategy whose `on_update` follows from the staleness of the update alone says so by `arrival_rule(view)`:

    add      x = x + weight (w_i - w_base)            on arrival
    mix      x = (1 - weight) x + weight w_i          on arrival
    latest   x = mean over clients of the latest w_c  on arrival, by `combiner`
    hold     the arrival waits, counting `weight`; when `hold` of them wait, `merge_held` merges them and ends the round
    cohort   the arrival waits, counting its samples; when nobody is at work, `merge_held` merges and ends the round

For each report or loss a new ticket goes out, so that `tickets` are out; of a cohort, all at once when nobody is at
work. Their clients are drawn uniformly from the idle ones. The hooks remain what is true: a
simulator may step through them at any time, and arrives at the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

from asyncfed.core.record import Record
from asyncfed.core.types import Combine, Merge, Schedule, Work

if TYPE_CHECKING:
    from asyncfed.strategies.protocol import View


class ArrivalRule(Record):
    """One of the rules above.

    Args:
        kind: which.
        tickets: how many are out at once, or the size of a cohort.
        weight: what an update counts, by its staleness; not in a cohort.
        combiner: how "latest" merges.
        hold: how many arrivals wait for a merge of "hold", 1 or more.
        merge_held: the merge of waiting tickets, in the order of arrival, with what each counts.

    The state of a strategy that merges on arrival has the field `merged_this_round`; a round is `tickets` of them. That
    of one that holds has `tickets` and `discounts`, of a cohort `tickets` and `examples`.
    """

    kind: Literal["add", "mix", "latest", "hold", "cohort"]
    tickets: int
    weight: Callable[[int], float]
    combiner: Combine | None = None
    hold: int = 1
    merge_held: Callable[[tuple[int, ...], tuple[Any, ...]], Merge] | None = None


class DecidesByStaleness(Protocol):
    """A strategy that may have an `ArrivalRule`."""

    @property
    def work(self) -> Work: ...
    @property
    def schedule(self) -> Schedule | None: ...
    def arrival_rule(self, view: View) -> ArrivalRule | None:
        """The rule, with these clients; None if these settings have none, or if another rule merges."""
        ...
