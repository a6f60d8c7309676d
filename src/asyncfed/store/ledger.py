"""The running account of a run: time, energy, bytes, staleness and who took part, summed up round by round."""

from __future__ import annotations

from typing import Any


class Ledger:
    """Counts as things happen; `close_round` answers with the row of the round (see `schema.ROUND_COLUMNS`).

    `cumulative_spread` is the paper's wall-clock, the sum over rounds of longest minus shortest duration;
    `cumulative_longest` is the published scripts', the sum of longest durations. `elapsed` is the honest one. Energy is
    in joules, of computing only, lost work included. Jain's index of participation is 1 when all clients were merged
    equally often and 1/C when only one was.
    """

    def __init__(self, num_clients: int, model_bytes: int) -> None:
        self.num_clients = num_clients
        self.model_bytes = model_bytes
        self.energy = 0.0
        self.bytes_down = 0
        self.bytes_up = 0
        self.lost = 0
        self.dropped = 0
        self.cumulative_spread = 0.0
        self.cumulative_longest = 0.0
        self.merges_of: dict[int, int] = {}
        self._merges = 0
        self._squares = 0
        self._open_round()

    def _open_round(self) -> None:
        self._shortest = float("inf")
        self._longest = 0.0
        self._staleness_sum = 0
        self._staleness_max = 0
        self._merged = 0

    def reported(self, duration: float, energy: float) -> None:
        self.energy += energy
        self.bytes_up += self.model_bytes
        if duration < self._shortest:
            self._shortest = duration
        if duration > self._longest:
            self._longest = duration

    def merged(self, client: int, staleness: int) -> None:
        self._merged += 1
        self._staleness_sum += staleness
        if staleness > self._staleness_max:
            self._staleness_max = staleness
        before = self.merges_of.get(client, 0)
        self.merges_of[client] = before + 1
        self._merges += 1
        self._squares += 2 * before + 1

    def close_round(self, round: int, version: int, updates: int, elapsed: float) -> tuple[Any, ...]:
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
            len(self.merges_of),
            self.jain_index(),
        )
        self._open_round()
        return row

    def jain_index(self) -> float:
        return self._merges**2 / (self.num_clients * self._squares) if self._squares else 0.0

    def snapshot(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "merges_of"}
        state["_shortest"] = None if self._shortest == float("inf") else self._shortest
        return {**state, "clients": list(self.merges_of), "merges": list(self.merges_of.values())}

    @classmethod
    def restored(cls, snapshot: dict[str, Any]) -> Ledger:
        state = dict(snapshot)
        clients, merges = state.pop("clients"), state.pop("merges")
        ledger = cls(state["num_clients"], state["model_bytes"])
        vars(ledger).update(state)
        ledger._shortest = float("inf") if state["_shortest"] is None else state["_shortest"]
        ledger.merges_of = dict(zip(clients, merges, strict=True))
        return ledger
