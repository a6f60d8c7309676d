"""The running account of a run: time, energy, bytes, staleness and who took part, summed up round by round."""

from __future__ import annotations

from typing import Any


class Ledger:
    """Counts reports, skips, merges and losses; `close_round` gives the row of a round (see `schema.ROUND_COLUMNS`).

    `cumulative_spread` is the paper's wall-clock, the sum over rounds of longest minus shortest duration;
    `cumulative_longest` is the published scripts', the sum of longest durations; `elapsed` is what the run's clock
    shows. Energy is in joules, of computing only, lost work included. Jain's index of participation is 1 when all
    clients were merged equally often and 1/C when only one was.
    """

    def __init__(self, num_clients: int, model_bytes: int) -> None:
        self.num_clients = num_clients
        self.model_bytes = model_bytes
        self.energy = 0.0
        self.bytes_down = 0
        self.bytes_up = 0
        self.lost = 0
        self.dropped = 0
        self.skipped = 0
        self.cumulative_spread = 0.0
        self.cumulative_longest = 0.0
        self.merges_by_client: dict[int, int] = {}
        self.participants = 0  # clients with at least one merge
        self._merges = 0
        self._squares = 0
        self._open_round()

    def _open_round(self) -> None:
        self._shortest = float("inf")
        self._longest = 0.0
        self._staleness_sum = 0
        self._staleness_max = 0
        self._merged = 0

    def count_report(self, duration: float, energy: float, bytes_up: int) -> None:
        """A client reported: it worked for `duration` seconds, spent `energy` joules and sent so many bytes."""
        self.energy += energy
        self.bytes_up += bytes_up
        if duration < self._shortest:
            self._shortest = duration
        if duration > self._longest:
            self._longest = duration

    def count_skip(self, duration: float, energy: float, bytes_up: int) -> None:
        """A client worked as for a report, and said in so many bytes that it had nothing worth sending."""
        self.count_report(duration, energy, bytes_up)
        self.skipped += 1

    def count_merge(self, client: int, staleness: int) -> None:
        """An update of this client was merged, so many versions after its download."""
        self._merged += 1
        self._staleness_sum += staleness
        if staleness > self._staleness_max:
            self._staleness_max = staleness
        before = self.merges_by_client.get(client, 0)
        if not before:
            self.participants += 1
        self.merges_by_client[client] = before + 1
        self._merges += 1
        self._squares += 2 * before + 1

    def close_round(self, round: int, version: int, updates: int, elapsed: float) -> tuple[Any, ...]:
        """The row of the round that ends here; the next one begins."""
        spread = max(0.0, self._longest - self._shortest)
        self.cumulative_spread += spread
        self.cumulative_longest += self._longest
        row = (
            round,
            version,
            updates,
            elapsed,
            spread,
            self._longest,
            self.cumulative_spread,
            self.cumulative_longest,
            self.energy,
            self.bytes_down,
            self.bytes_up,
            self._staleness_sum / max(1, self._merged),
            self._staleness_max,
            self.lost,
            self.dropped,
            self.participants,
            self.jain_index(),
            self.skipped,
        )
        self._open_round()
        return row

    def jain_index(self) -> float:
        """(Σ n_c)² / (C Σ n_c²) of the clients' numbers n_c of merged updates; 0 before the first."""
        return self._merges**2 / (self.num_clients * self._squares) if self._squares else 0.0

    def snapshot(self) -> dict[str, Any]:
        """All counts as JSON can hold them."""
        counted = ("merges_by_client", "participants")
        state = {name: value for name, value in vars(self).items() if name not in counted}
        state["_shortest"] = None if self._shortest == float("inf") else self._shortest
        return {**state, "clients": list(self.merges_by_client), "merges": list(self.merges_by_client.values())}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> Ledger:
        """The ledger as it was when `snapshot` was called."""
        state = dict(snapshot)
        clients, merges = state.pop("clients"), state.pop("merges")
        ledger = cls(state["num_clients"], state["model_bytes"])
        vars(ledger).update(state)
        ledger._shortest = float("inf") if state["_shortest"] is None else state["_shortest"]
        ledger.merges_by_client = dict(zip(clients, merges, strict=True))
        ledger.participants = len(clients)
        return ledger
