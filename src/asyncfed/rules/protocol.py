"""What a server rule is: how arrivals become the next model, as a frozen value with a memory that goes in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from asyncfed.core.types import Merge, Work
from asyncfed.registry import declare_part

Arrays: TypeAlias = dict[str, np.ndarray]
NOTHING: Arrays = {}


class Arrival(NamedTuple):
    """One update as a rule sees it.

    Args:
        ticket: the ticket's number.
        client: whose it is.
        weight: what the strategy lets it count in this merge; 0 while it is being measured.
        staleness: versions merged since the client downloaded the model.
        work: what the client was asked to do.
        steps: the mini-batch steps it made.
        num_examples: the samples it has.
        start: the model it started from.
        model: the model it ended with, as far as the server knows: with an uplink, `start` plus what was sent.
        sent: what the rule's `send` had sent it along with the model.
        metrics: the numbers that came with the report, what the rule measured among them.
    """

    ticket: int
    client: int
    weight: float
    staleness: int
    work: Work
    steps: int
    num_examples: int
    start: np.ndarray
    model: np.ndarray
    sent: Arrays = NOTHING
    metrics: Mapping[str, float] | None = None

    @property
    def change(self) -> np.ndarray:
        """The model it ended with, less the one it started from."""
        change: np.ndarray = self.model - self.start
        return change

    def payload(self, merge: Merge) -> np.ndarray:
        """What the merge is about: the model, or the change."""
        return self.model if merge.of == "model" else self.change


Probe: TypeAlias = Callable[[np.ndarray, int, Work, int], np.ndarray]
"""`probe(params, client, work, key)`: what training this client from these params ends with, done by the server itself.
Only for a client whose data the server holds, such as a trusted one, or `SERVER_ROWS`."""

SERVER_ROWS = -1
"""In place of a client's number: the rows of the server's own, which the experiment's `trusted` names."""


@runtime_checkable
class ServerRule(Protocol):
    """How arrivals become the next model. A strategy has one, in `rule`; without it, the weighted sum of the merge.

    | method | called when | answers with |
    |---|---|---|
    | `check(work)` | before a run | nothing; raises ConfigError if clients doing this work do not fit the rule |
    | `init(params, num_clients)` | the run begins | the memory: named arrays, checkpointed as they are |
    | `send(memory, client)` | a ticket leaves | vectors that go down with the model; only `correction` has a meaning |
    | `measure(memory, params, arrival, probe)` | a report arrives, before the strategy is asked | numbers for it |
    | `step(memory, params, arrivals, merge, key)` | a merge | the next params, the memory, numbers for the journal |

    The arrays of `memory` may be changed in place, or replaced; `params` and what is in arrivals may not. All
    randomness of `step` comes from `key`, which is of 64 bits or, in live runs of a rule that `draws_noise`, a secret
    one: `kernels.noise_normals` draws from either. `theorem` says which theorem covers the rule, None if none does.
    """

    @property
    def theorem(self) -> str | None: ...
    @property
    def draws_noise(self) -> bool: ...
    def check(self, work: Work) -> None: ...
    def init(self, params: np.ndarray, num_clients: int) -> Arrays: ...
    def send(self, memory: Arrays, client: int) -> Arrays: ...
    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]: ...
    def step(
        self, memory: Arrays, params: np.ndarray, arrivals: Sequence[Arrival], merge: Merge, key: int
    ) -> tuple[np.ndarray, Arrays, dict[str, float]]: ...


def rule_of(strategy: object) -> ServerRule | None:
    """The rule of a strategy; None if it has none. A field `rule` that is no rule is the strategy's own affair."""
    rule = getattr(strategy, "rule", None)
    return rule if isinstance(rule, ServerRule) else None


def check_merge(rule: ServerRule, merged_at_once: int, num_clients: int) -> None:
    """Refuse a rule that cannot work with merges of so many updates; a rule that does not say can.

    Args:
        rule: what a strategy merges by.
        merged_at_once: how many updates make a version.
        num_clients: how many clients there are.
    """
    check = getattr(rule, "check_merge", None)
    if check is not None:
        check(merged_at_once, num_clients)


class Rule:
    """What most rules share: no memory, nothing sent, nothing measured, no noise, no theorem. `step` is their own."""

    __slots__ = ()

    @property
    def theorem(self) -> str | None:
        """None."""
        return None

    @property
    def draws_noise(self) -> bool:
        """No: the next model follows from the arrivals. In live runs noise is drawn from the machine's own entropy."""
        return False

    @property
    def change_bound(self) -> float | None:
        """How long a change may be in the weighted sum that the rule makes of a merge; None: it makes no such sum."""
        return None

    @property
    def sum_only(self) -> bool:
        """Whether the weighted sum of a merge's payloads is all that it needs of them: not, unless a rule says so.

        The weights must not depend on the payloads; numbers such as staleness, steps or samples may be known of each
        client. A rule around another one says so only if it needs no more than that one; `TreeNoised` is one of those.
        """
        return False

    def upload_size(self, num_params: int, num_clients: int) -> int | None:
        """The bytes of an upload, where the rule simulates a protocol that sets them; None: what clients send."""
        return None

    @property
    def trains_on(self) -> int | None:
        """Whose rows the server itself trains on, by `probe`: a client's number, or `SERVER_ROWS`; None: nobody's."""
        return None

    def check(self, work: Work) -> None:
        """Any work will do."""

    def check_merge(self, merged_at_once: int, num_clients: int) -> None:
        """Any number of updates will do."""

    def init(self, params: np.ndarray, num_clients: int) -> Arrays:
        """No memory."""
        return {}

    def send(self, memory: Arrays, client: int) -> Arrays:
        """Nothing beside the model."""
        return NOTHING

    def measure(self, memory: Arrays, params: np.ndarray, arrival: Arrival, probe: Probe) -> dict[str, float]:
        """Nothing."""
        return {}


declare_part("rule", ServerRule)


def trains_on(rule: ServerRule | None) -> int | None:
    """Whose rows the rule asks the server to train on; None: nobody's, or the rule does not say."""
    return getattr(rule, "trains_on", None)


def upload_size(rule: ServerRule, num_params: int, num_clients: int) -> int | None:
    """The bytes of an upload, where the rule simulates a protocol that sets them; None: what clients send."""
    size = getattr(rule, "upload_size", None)
    return None if size is None else size(num_params, num_clients)


def is_sum_only(rule: ServerRule | None) -> bool:
    """Whether the weighted sum of a merge is all that the rule needs of it; without a rule it is.

    A rule that does not say counts as one that needs single updates.
    """
    return rule is None or bool(getattr(rule, "sum_only", False))


class Combiner(Protocol):
    """How payloads become the next model, named by the merges of a strategy that hands it settings with each."""

    @property
    def name(self) -> str:
        """What merges call it."""
        ...

    def init(self, params: np.ndarray) -> Any:
        """The memory at the first merge; `params` is the model then."""
        ...

    def apply(
        self,
        memory: Any,
        params: np.ndarray,
        payloads: Sequence[np.ndarray],
        weights: Sequence[float],
        clients: Sequence[int],
        settings: Sequence[tuple[str, Any]],
    ) -> tuple[np.ndarray, Any, dict[str, float]]:
        """The new params, the memory, and findings about the merge.

        The memory may be changed in place; `params` and payloads may not.

        Args:
            memory: what `init` or the last `apply` gave.
            params: the model before the merge.
            payloads: models or deltas, in ticket order.
            weights: what each of them counts.
            clients: whose they are.
            settings: the merge's own, as (name, value) pairs.
        """
        ...

    def dump(self, memory: Any) -> Arrays:
        """The memory as named arrays, for a checkpoint."""
        ...

    def load(self, arrays: Arrays) -> Any:
        """The inverse of `dump`."""
        ...
