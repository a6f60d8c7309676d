"""Plan: all that a run needs besides its problem and its clock."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Budget
from asyncfed.engine.evaluation import Evaluation, Evaluator
from asyncfed.engine.stopping import Stopping
from asyncfed.problems.protocol import ClientShard, Initialisation, Problem
from asyncfed.problems.trusted_rows import TrustedData
from asyncfed.rules.protocol import SERVER_ROWS, rule_of, trains_on

Checkpoint: TypeAlias = tuple[dict[str, Any], dict[str, np.ndarray]]

MOST_DROPS, MOST_DROPS_A_CLIENT = 10_000, 100
"""When so many updates in a row, and so many for each client, are dropped or skipped, none will be merged any more."""


class Churn(Config):
    """A client joins or leaves at a moment of virtual time. A client whose first event is a join is absent until then.

    What happens at the same moment has a fixed order. First come joins and leaves, by client number, those of one
    client as they are listed; then tickets that arrive or are given up as lost, by ticket number. So a client that
    leaves at the moment its report is due loses that ticket, and one that joins at the moment another's report arrives
    is idle, or at work already, when the strategy handles that report. Events at time 0 come after the strategy's first
    dispatches: a client that leaves at 0 may lose a ticket, one that joins at 0 gets none before it has joined. Events
    at exactly `budget.elapsed` still happen.

    Args:
        time: seconds of virtual time, 0 or more.
        client: the client's number, 0 to num_clients - 1.
        event: "join" or "leave"; the events of a client must alternate.

    >>> Churn(time=90.0, client=3, event="leave").event
    'leave'
    """

    time: float
    client: int
    event: Literal["join", "leave"]

    def __post_init__(self) -> None:
        if not 0 <= self.time < float("inf"):
            raise ConfigError(f"churn.time is {self.time}; it must be zero or a positive number of seconds.")


def check_churn(churn: Sequence[Churn], num_clients: int) -> None:
    """Refuse comings and goings of clients that do not exist, are there already, or are gone already."""
    last_event: dict[int, str] = {}
    for c in _in_order(churn):
        if not 0 <= c.client < num_clients:
            raise ConfigError(
                f"churn names client {c.client}, but clients are numbered 0 to {num_clients - 1}; "
                "a client that joins later is one of them, absent from the start."
            )
        if last_event.get(c.client) == c.event:
            raise ConfigError(
                f"churn lets client {c.client} {c.event} at {c.time:g} s, but its event before that was a {c.event} "
                "too; joins and leaves of a client must alternate. Remove one of them."
            )
        last_event[c.client] = c.event


def _in_order(churn: Sequence[Churn]) -> list[Churn]:
    return sorted(churn, key=lambda c: (c.time, c.client))


class Plan(Config):
    """`absent` are clients not there at the start, besides those whose first event in `churn` is a join.

    `measures` says whether models are measured on the clients' data; private runs do not.
    """

    strategy: Any
    seed: int = 0
    budget: Budget = Budget()
    init: Initialisation = "zeros"
    churn: tuple[Churn, ...] = ()
    absent: tuple[int, ...] = ()
    evaluation: Evaluation = Evaluation()
    measures: bool = True
    divergence_norm: float = 1e9
    stopping: Stopping | None = None
    threads: int = 1
    trusted: TrustedData | None = None

    def churn_in_order(self) -> list[Churn]:
        return _in_order(self.churn)

    def absent_at_start(self) -> set[int]:
        first_event = {c.client: c.event for c in reversed(self.churn_in_order())}
        return {client for client, event in first_event.items() if event == "join"} | set(self.absent)


def evaluator_of(problem: Problem, plan: Plan) -> Evaluator:
    """What measures the models of a run."""
    error_of = None if plan.stopping is None else plan.stopping.error_of_part
    return Evaluator(problem, plan.evaluation, plan.threads, plan.seed, error_of, plan.measures)


def most_drops(num_clients: int, plan: Plan) -> float:
    """How many updates dropped or skipped in a row end a run; infinite where time or energy ends it anyway."""
    ends_anyway = plan.budget.elapsed is not None or (plan.stopping is not None and plan.stopping.energy is not None)
    return inf if ends_anyway else max(MOST_DROPS, MOST_DROPS_A_CLIENT * num_clients)


def check_stopping(problem: Problem, plan: Plan) -> None:
    """Refuse rules for stopping that this problem's measurements could never meet."""
    if plan.stopping is not None:
        first = evaluator_of(problem, plan).measure(problem.init(plan.seed, how=plan.init), version=0)
        plan.stopping.check(first, plan.evaluation.every)


def trusted_shard(problem: Problem, plan: Plan) -> ClientShard | None:
    """What the server trains on rows of its own with, where the strategy's rule asks for it; None where it does not.

    Raises:
        ConfigError: the rule asks for rows that this server does not hold.
    """
    wanted = trains_on(rule_of(plan.strategy))
    if wanted is None:
        return None
    if wanted != SERVER_ROWS:
        if not getattr(problem, "holds_client_data", True):
            raise ConfigError(
                f"strategy.rule trains on client {wanted}'s data, which are not on this server. Give the server rows "
                'of its own, trusted = {kind = "file", file = "trusted.npz"}, and set trusted_client = "server".'
            )
        return None
    if plan.trusted is None:
        raise ConfigError(
            "strategy.rule trains on rows of the server's own, but the experiment has none. Set trusted, such as "
            'trusted = {kind = "rows", rows = 100}, or name a trusted_client.'
        )
    return plan.trusted.shard(problem, plan.seed)
