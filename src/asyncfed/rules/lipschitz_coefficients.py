"""LipschitzCoefficients: how fast each client's changes change with the model, and what most clients stay below.

State: the last change and its start for each client, a few numbers each, the last merged change and the model before.
Bytes beyond the model: none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from sys import float_info
from typing import Literal

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Merge, Work
from asyncfed.registry import register
from asyncfed.rules.mean import Mean
from asyncfed.rules.protocol import Arrays, Arrival, Probe, ServerRule
from asyncfed.rules.work_checks import refuse_settings
from asyncfed.rules.wrapping import WrappingRule, with_prefix, without_prefix

NEVER = -1.0
"""In place of a coefficient: there is none."""


@register("rule")
class LipschitzCoefficients(WrappingRule, Config, tag_field="kind", tag="lipschitz_coefficients"):
    """Measures by how much an arriving change differs from an earlier one, over the distance of their models.

        k_i = |D_i - D_i'| / |s_i - s_i'|      D_i' the client's report before, s_i and s_i' the models they began at
        coefficient_limit = the q-th quantile of all clients' k,     q = (n - liars) / n, or 2/3

    `coefficient` and `coefficient_limit` are reported with each arrival that has both; a client's first report has
    none. Changes stand for gradients: where all do the same work, one is the other times a factor that cancels. A
    report that began at the same model as the client's last one leaves its k as it is. The quantile is a value that
    occurs: the ceil(q m)-th smallest of m.

    Args:
        liars: f, below the number of clients; of n clients' coefficients the (n - f)/n quantile is the limit.
        reading: "paper" compares the client's own latest k, and takes each client's latest for the limit; "code", as
            the authors' Java does, compares |D_i - D| / |x - x'|, D the change merged last and x' the model before it,
            with the 2/3 quantile of each client's largest of its last `window`.
        window: how many coefficients of a client are kept under "code", 1 or more.
        rule: how arrivals become the next model.

    >>> LipschitzCoefficients(liars=-1)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: rule.liars is -1; it must be 0 or more.

    Damaskinos et al., "Asynchronous Byzantine Machine Learning (the case of SGD)", ICML 2018.
    """

    liars: int = 1
    reading: Literal["paper", "code"] = "paper"
    window: int = 25
    rule: ServerRule = Mean()

    def __post_init__(self) -> None:
        if self.liars < 0:
            raise ConfigError(f"rule.liars is {self.liars}; it must be 0 or more.")
        if self.window < 1:
            raise ConfigError(f"rule.window is {self.window}; it must be at least 1 coefficient.")

    def check(self, work: Work) -> None:
        """Clients have to start from the server's model."""
        refuse_settings(
            "lipschitz_coefficients", work, start="it compares changes by the server's models they began at"
        )
        super().check(work)

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """Nobody has reported, and nothing was merged."""
        kept = self.window if self.reading == "code" else 1
        return {
            **super().init(params, num_clients),
            "changes": np.zeros((num_clients, params.size), params.dtype),
            "starts": np.zeros((num_clients, params.size), params.dtype),
            "reported": np.zeros(num_clients, np.int64),
            "coefficients": np.full((num_clients, kept), NEVER),
            "known": np.zeros(num_clients, np.int64),
            "merged": np.zeros_like(params),
            "before": np.zeros_like(params),
            "merges": np.zeros(1, np.int64),
        }

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """The arrival's coefficient and the limit, as far as there are any."""
        measured = super().measure(memory, params, arrival, probe)
        self._note_own(memory, arrival)
        largest = memory["coefficients"].max(axis=1)
        known = np.sort(largest[largest != NEVER])
        if self.reading == "paper":
            own = largest[arrival.client]
            coefficient = None if own == NEVER else float(own)
        else:
            gap = float(np.linalg.norm(params.astype(np.float64) - memory["before"]))
            coefficient = _ratio(arrival.change - memory["merged"], gap) if memory["merges"][0] and gap > 0 else None
        if coefficient is None or not known.size:
            return measured
        clients = len(largest)
        share = 2 / 3 if self.reading == "code" else (clients - self.liars) / clients
        place = min(max(ceil(share * known.size - 1e-9), 1), known.size)
        return {**measured, "coefficient": coefficient, "coefficient_limit": float(known[place - 1])}

    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]:
        """The wrapped rule's."""
        merged, wrapped, info = self.rule.step(without_prefix(memory), params, arrivals, merge, key)
        memory["merged"], memory["before"] = arrivals[-1].change, params.copy()
        memory["merges"] += 1
        own = {name: array for name, array in memory.items() if name not in with_prefix(without_prefix(memory))}
        return merged, {**own, **with_prefix(wrapped)}, info

    def _note_own(self, memory: Arrays, arrival: Arrival) -> None:
        """The client's coefficient, from its last report and this one."""
        client = arrival.client
        missing = client + 1 - len(memory["known"])
        if missing > 0:  # rows for all are there from the start, because a rule around this one keeps no new arrays
            for name, nothing in (
                ("changes", 0),
                ("starts", 0),
                ("reported", 0),
                ("coefficients", NEVER),
                ("known", 0),
            ):
                widths = [(0, missing), (0, 0)][: memory[name].ndim]
                memory[name] = np.pad(memory[name], widths, constant_values=nothing)
        change, start = memory["changes"][client], memory["starts"][client]
        if memory["reported"][client]:
            gap = float(np.linalg.norm(arrival.start.astype(np.float64) - start))
            if not gap > 0:
                return
            place = int(memory["known"][client]) % memory["coefficients"].shape[1]
            memory["coefficients"][client, place] = _ratio(arrival.change - change, gap)
            memory["known"][client] += 1
        memory["reported"][client] = 1
        change[:], start[:] = arrival.change, arrival.start


def _ratio(difference: np.ndarray, gap: float) -> float:
    """|difference| / gap, at most the largest float."""
    ratio = float(np.linalg.norm(difference.astype(np.float64))) / gap
    return ratio if isfinite(ratio) else float_info.max
