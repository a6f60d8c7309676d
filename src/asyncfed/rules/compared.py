"""Compared: each arrival is compared with the latest change of every client, and left out if it is far from them.

State: a change per client, two numbers per client for its suspicion. Bytes beyond the model: none.

When to use it: some clients may send false updates, and updates are merged one by one, or a fast client may have many
of a buffer. A client has one row of the table, however often it reports. While nobody lies, hardly anything is left
out, and the strategy does what it does without the rule.

What goes wrong elsewhere: a filter that compares an arrival with the last ones, most of which one fast liar sent; a
liar's first update, merged because nothing was there to compare it with; dropping what is filtered, after which a
strategy gives the next ticket to the same liar.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from statistics import median_low
from typing import NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Merge
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.client_table import ClientTable
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.vectors import COMBINERS
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix
from asyncfed.uplinks.norms import clip_to_norm, l2_norm

TABLE, COMBINER = "latest", "combiner/"
COMPARABLE = 2
"""So many clients must have reported before anything is merged."""

LARGEST = float(np.finfo(np.float64).max)
"""What is written in place of a number that is not finite."""

BY_CLIENT = ("seen", "filtered", "held", "held_ticket")
"""Numbers of each client: its judgements, aged; the weight and the ticket of its update that was held back."""


class Judged(NamedTuple):
    """An arrival as it is merged, and what was done to it: "" for nothing, "filtered" or "shortened", with a score."""

    ticket: int
    weight: float
    as_merged: Arrival
    what: str = ""
    score: float = 0.0


@register("rule")
class Compared(WrappingRule, Config, tag_field="kind", tag="compared"):
    """A change far from all clients' latest ones counts as if it were their median; the wrapped rule does the rest.

        T_c = the latest change of client c;   m = coordinate median of T;   d_c = |T_c - m|
        limit = max(factor * median of d, median of |T_c|);     D_i <- m  if  d_i > limit  ("filtered")

    As long as fewer than half of the clients in the table lie, m lies among honest changes in every coordinate, and the
    limit is at most `factor` times an honest distance, or an honest length where clients agree. A lie within it passes.

    - Until 2 f + 1 clients have reported, liars could be the majority. Changes are then shortened to the median norm of
      the table (`shortened` and `shortened/<ticket>`, its norm, in the journal), of two to the shorter one, and the
      first client's is held back (`held`) until there is another.
    - Filtered updates are in the journal: `filtered`, how many, and `filtered/<ticket>`, each one's d over the limit.
    - Each arrival is measured first: `suspicion` is the share of its client's earlier updates that were filtered, where
      each counts `ageing` times as much as the one after it.
    - It also goes around the mean of the latest models, AFL's own.

    Args:
        rule: what makes the next model; by default the weighted sum of the merge, or the strategy's own mean.
        liars: f, how many clients may lie, 1 or more; at least 2 f + 1 clients are needed.
        factor: how many times the usual distance is still accepted, above 1.
        ageing: how much an earlier judgement of a client counts at its next, above 0 and at most 1.

    >>> Compared(liars=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.liars is 0; it must be 1 or more. Without liars, leave the rule out.
    """

    rule: ServerRule = Mean()
    liars: int = 1
    factor: float = 4.0
    ageing: float = 0.9

    def __post_init__(self) -> None:
        if self.liars < 1:
            raise ConfigError(f"rule.liars is {self.liars}; it must be 1 or more. Without liars, leave the rule out.")
        if not (isfinite(self.factor) and self.factor > 1):
            raise ConfigError(f"rule.factor is {self.factor}; it must be above 1.")
        if not 0 < self.ageing <= 1:
            raise ConfigError(f"rule.ageing is {self.ageing}; it must be above 0 and at most 1.")

    @property
    def needed(self) -> int:
        """How many clients must have reported: 2 f + 1."""
        return 2 * self.liars + 1

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Refuse fewer clients than can outvote the liars."""
        if num_clients < self.needed:
            raise ConfigError(
                f"strategy.rule compares each update with those of other clients: against {self.liars} it needs "
                f"{self.needed} clients, and there are {num_clients}. Set liars lower, or leave the rule out."
            )
        super().check_merge(merged_at_once, num_clients)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No changes; nobody has been judged."""
        judged = {name: np.zeros(num_clients) for name in BY_CLIENT}
        return {**judged, **ClientTable.init(TABLE, params, num_clients), **super().init(params, num_clients)}

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The suspicion, and what the wrapped rule measures."""
        seen, found = memory["seen"], super().measure(memory, params, arrival, probe)
        known = arrival.client < seen.size and seen[arrival.client] > 0
        return {
            **found,
            "suspicion": float(memory["filtered"][arrival.client] / seen[arrival.client]) if known else 0.0,
        }

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's, from arrivals that are near the others'."""
        own = {name: array for name, array in memory.items() if not name.startswith(("wrapped/", COMBINER))}
        table = ClientTable(own, TABLE)
        for arrival in arrivals:
            change = arrival.change
            if np.isfinite(change).all():
                table.put(arrival.client, change)
            _grow(own, arrival.client)
        if table.num_rows < COMPARABLE:
            for arrival in arrivals:
                own["held"][arrival.client], own["held_ticket"][arrival.client] = arrival.weight, arrival.ticket
            return params, {**memory, **own}, {"held": len(arrivals)}
        late = self._release(own, params, arrivals)
        judged = self._judge_all(own, [*late, *arrivals])
        state = {name: array for name, array in memory.items() if name not in own}
        for each in judged[: len(late)]:
            one = replace(merge, tickets=(each.ticket,), weights=(each.weight,), ends_round=False)
            params, state, _ = self._merge(state, params, [each.as_merged], _of_one(one, merge), key)
        whole = [each.as_merged for each in judged[len(late) :]]
        params, state, info = self._merge(state, params, whole, merge, key)
        return params, {**own, **state}, {**info, **_findings(judged)}

    def _judge_all(self, own: Arrays, arrivals: Sequence[Arrival]) -> list[Judged]:
        if ClientTable(own, TABLE).num_rows < self.needed:
            rows = own[f"{TABLE}/rows"][: ClientTable(own, TABLE).num_rows]
            return _shorten(arrivals, median_low([l2_norm(row) for row in rows]))
        centre, limit = self._usual(own)
        return [self._judge(own, arrival, centre, limit) for arrival in arrivals]

    def _usual(self, own: Arrays) -> tuple[np.ndarray, float]:
        """The median of all clients' latest changes, and how far from it a change may be."""
        rows = own[f"{TABLE}/rows"][: ClientTable(own, TABLE).num_rows]
        weights = np.full(len(rows), 1.0 / len(rows))
        found, _ = Median().aggregate(rows, weights, {}, np.arange(len(rows)))
        centre = found.vector.astype(np.float64)
        distances, norms = [l2_norm(row - centre) for row in rows], [l2_norm(row) for row in rows]
        return centre, max(self.factor * float(np.median(distances)), float(np.median(norms)))

    def _release(self, own: Arrays, params: np.ndarray, arrivals: Sequence[Arrival]) -> list[Arrival]:
        """What was held back while the model stayed as it was, in the order of clients."""
        weights, tickets, like = own["held"], own["held_ticket"], arrivals[0]
        if not weights.any():
            return []
        table, here = ClientTable(own, TABLE), {arrival.client for arrival in arrivals}
        own["held"] = np.zeros_like(weights)
        return [
            like._replace(
                ticket=int(tickets[client]),
                client=client,
                weight=float(weights[client]),
                start=params,
                model=params + table.row(client),
            )
            for client in np.flatnonzero(weights).tolist()
            if client not in here and table.has_row(client)
        ]

    def _judge(self, own: Arrays, arrival: Arrival, centre: np.ndarray, limit: float) -> Judged:
        """The arrival, or the usual change in its place."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = l2_norm(arrival.change - centre)
        kept, client = distance <= limit, arrival.client
        own["seen"][client] = self.ageing * own["seen"][client] + 1.0
        own["filtered"][client] = self.ageing * own["filtered"][client] + (0.0 if kept else 1.0)
        if kept:
            return Judged(arrival.ticket, arrival.weight, arrival)
        usual = arrival._replace(model=(arrival.start + centre).astype(arrival.start.dtype))
        score = distance / limit if limit > 0 and isfinite(distance) else LARGEST
        return Judged(arrival.ticket, arrival.weight, usual, "filtered", min(score, LARGEST))

    def _merge(
        self, state: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """What the wrapped rule makes of it; where the merge names a mean of its own, that."""
        if merge.combiner is None or not isinstance(self.rule, Mean):
            merged, wrapped, info = self.rule.step(without_prefix(state), params, arrivals, merge, key)
            return merged, with_prefix(wrapped), info
        combiner = COMBINERS[merge.combiner.name]
        kept = without_prefix(state, COMBINER)
        before = combiner.load(kept) if kept else combiner.init(params)
        payloads, weights = [arrival.payload(merge) for arrival in arrivals], [arrival.weight for arrival in arrivals]
        clients = [arrival.client for arrival in arrivals]
        merged, after, info = combiner.apply(before, params, payloads, weights, clients, merge.combiner.settings)
        return merged, with_prefix(combiner.dump(after), COMBINER), info


def _shorten(arrivals: Sequence[Arrival], bound: float) -> list[Judged]:
    """The arrivals with changes of this norm at most; one with a number that is not finite counts as no change."""
    judged = []
    for arrival in arrivals:
        change, norm = arrival.change, l2_norm(arrival.change)
        if norm <= bound:
            judged.append(Judged(arrival.ticket, arrival.weight, arrival))
            continue
        model = arrival.start + clip_to_norm(change, bound) if isfinite(norm) else arrival.start
        short = arrival._replace(model=model)
        judged.append(Judged(arrival.ticket, arrival.weight, short, "shortened", norm if isfinite(norm) else LARGEST))
    return judged


def _findings(judged: Sequence[Judged]) -> dict[str, float]:
    """Who was filtered or shortened, for the journal."""
    found: dict[str, float] = {}
    for what in ("filtered", "shortened"):
        scores = {f"{what}/{each.ticket}": each.score for each in judged if each.what == what}
        found |= {what: len(scores), **scores} if scores else {}
    return found


def _grow(own: Arrays, client: int) -> None:
    """Room for a client that was not known."""
    missing = client + 1 - own["seen"].size
    if missing > 0:
        for name in BY_CLIENT:
            own[name] = np.pad(own[name], (0, missing))


def _of_one(one: Merge, whole: Merge) -> Merge:
    """A merge of one update that was held back: it counts what it would have counted, the rest of the model stays."""
    if whole.combiner is not None:
        settings = dict(whole.combiner.settings)
        settings = {**settings, "shares": settings["shares"][:1], "forget": ()}
        settings.pop("joined", None)
        return replace(one, combiner=replace(whole.combiner, settings=tuple(settings.items())))
    return one if one.of == "delta" else replace(one, keep=1.0 - one.weights[0])
