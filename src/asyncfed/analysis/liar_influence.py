"""How much liars have of a run: their share of updates, not of clients. Fast liars speak more often."""

from __future__ import annotations

from typing import NamedTuple

from asyncfed.core.record import UNSET
from asyncfed.runs.result import RecordedRun
from asyncfed.store.events import recorded_merges
from asyncfed.store.schema import DISPATCH, DROP

FILTERED = "filtered/"
"""How what a rule writes down at a merge names a ticket that it filtered out."""


class LiarInfluence(NamedTuple):
    """What a run's journal says of its liars' updates.

    Args:
        liars: how many clients lie.
        clients: how many clients there are.
        updates: merged updates, those that a rule filtered out at the merge included.
        by_liars: how many of them are liars'.
        weight: the liars' share of all weights of merges, as the strategy gave them; 0 if all are 0.
        filtered_liars, filtered_honest: how many merged updates of either a rule filtered out.
        dropped_liars, dropped_honest: how many updates of either the strategy dropped instead of merging.
    """

    liars: int
    clients: int
    updates: int
    by_liars: int
    weight: float
    filtered_liars: int
    filtered_honest: int
    dropped_liars: int
    dropped_honest: int

    @property
    def share(self) -> float:
        """The liars' share of the merged updates; 0 if there are none."""
        return self.by_liars / self.updates if self.updates else 0.0

    @property
    def sentence(self) -> str:
        """All of it in a sentence.

        >>> LiarInfluence(3, 10, 200, 90, 0.45, 0, 0, 80, 2).sentence
        '3 of 10 clients lie: 45 % of the merged updates, 45 % of the weight; dropped: 80 of liars, 2 of others'
        """
        verb = "lies" if self.liars == 1 else "lie"
        text = f"{self.liars} of {self.clients} clients {verb}: {self.share:.0%} of the merged updates, "
        text = (text + f"{self.weight:.0%} of the weight").replace("%", " %")
        honest = self.updates - self.by_liars
        if self.filtered_liars or self.filtered_honest:
            text += f"; filtered: {self.filtered_liars} of liars' {self.by_liars}"
            text += f", {self.filtered_honest} of others' {honest}"
        if self.dropped_liars or self.dropped_honest:
            text += f"; dropped: {self.dropped_liars} of liars, {self.dropped_honest} of others"
        return text


def liar_influence(run: RecordedRun) -> LiarInfluence | None:
    """How much of a run its liars had; None if nobody lies in it."""
    if "attack" not in run.header["experiment"]:
        return None
    attack = run.experiment.attack
    assert attack is not UNSET
    clients = int(run.header["num_clients"])
    liars = frozenset(attack.choose(clients, run.experiment.seed))
    if not liars:
        return None
    updates = by_liars = 0
    weight = {True: 0.0, False: 0.0}
    filtered, dropped = {True: 0, False: 0}, {True: 0, False: 0}
    for merge in recorded_merges(run.journal.event_rows()):
        info = merge.event.info
        for update in merge.updates:
            lies = update.client in liars
            updates += 1
            by_liars += lies
            weight[lies] += abs(update.weight)
            filtered[lies] += f"{FILTERED}{update.ticket}" in info
    owner: dict[int, int] = {}
    for event in run.journal.event_rows():
        if event.kind == DISPATCH:
            owner[event.require_ticket()] = event.require_client()
        elif event.kind == DROP:
            dropped[owner.get(event.require_ticket(), -1) in liars] += 1
    total = weight[True] + weight[False]
    return LiarInfluence(
        *(len(liars), clients, updates, by_liars, weight[True] / total if total else 0.0),
        *(filtered[True], filtered[False], dropped[True], dropped[False]),
    )
