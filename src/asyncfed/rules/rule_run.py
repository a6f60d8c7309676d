"""A server rule at work in one run: its memory, and what its tickets were sent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from asyncfed.core.types import Merge
from asyncfed.kernels.merge_workspace import MergeWorkspace, merging_in
from asyncfed.rules.protocol import NOTHING, Arrays, Arrival, Probe, ServerRule, upload_size

PREFIX = "rule/"


class RuleRun:
    """Asks the rule, and keeps its memory from one merge to the next.

    Args:
        rule: the strategy's.
        params: the first model.
        num_clients: how many clients there are.
        threads: how many the rule may use for a merge, 1 or more; nothing depends on it but the time.
    """

    def __init__(self, rule: ServerRule, params: np.ndarray, num_clients: int, threads: int = 1) -> None:
        self.rule, self._workspace = rule, MergeWorkspace(threads)
        self.memory: Arrays = rule.init(params, num_clients)
        self.upload_size = upload_size(rule, params.size, num_clients)
        self._sent: dict[int, Arrays] = {}

    def send(self, ticket: int, client: int) -> Arrays:
        """What goes down with this ticket beside the model; it is kept until the ticket is merged or forgotten."""
        sent = self.rule.send(self.memory, client)
        if sent:
            self._sent[ticket] = sent
        return sent

    def sent_with(self, ticket: int) -> Arrays:
        """What went down with this ticket."""
        return self._sent.get(ticket, NOTHING)

    def forget(self, ticket: int) -> None:
        """The ticket is lost, dropped or merged."""
        self._sent.pop(ticket, None)

    def measure(self, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """Numbers about an arrival, for the strategy and the journal."""
        return self.rule.measure(self.memory, params, arrival, probe)

    def step(
        self, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, dict[str, float]]:
        """The next model, and numbers for the journal."""
        with merging_in(self._workspace):
            merged, self.memory, info = self.rule.step(self.memory, params, arrivals, merge, key)
        return merged, info

    # ---- checkpoints -----------------------------------------------------------------------------------------

    def dump(self) -> Arrays:
        """The memory and what tickets were sent, as named arrays."""
        arrays = {f"{PREFIX}memory/{name}": array for name, array in self.memory.items()}
        for ticket, sent in self._sent.items():
            arrays |= {f"{PREFIX}sent/{ticket}/{name}": array for name, array in sent.items()}
        return arrays

    def load(self, arrays: Arrays) -> None:
        """The inverse of `dump`."""
        self.memory, self._sent = {}, {}
        for name, array in arrays.items():
            if name.startswith(f"{PREFIX}memory/"):
                self.memory[name.removeprefix(f"{PREFIX}memory/")] = array
            elif name.startswith(f"{PREFIX}sent/"):
                ticket, part = name.removeprefix(f"{PREFIX}sent/").split("/", 1)
                self._sent.setdefault(int(ticket), {})[part] = array
