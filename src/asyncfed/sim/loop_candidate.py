"""Which runs can be left to the compiled loop of `compiled_loop.py`: those all of whose decisions are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from asyncfed.core.record import UNSET
from asyncfed.core.types import Work
from asyncfed.delays import DelayModel
from asyncfed.delays.delay_numbers import NumberedDelays
from asyncfed.engine.execution import Execution
from asyncfed.engine.plan import Plan
from asyncfed.problems.client_measurements import asks_for_measurements
from asyncfed.problems.client_sizes import client_sizes
from asyncfed.problems.protocol import Problem
from asyncfed.registry import promises

if TYPE_CHECKING:
    from asyncfed.strategies.arrival_rule import ArrivalRule, DecidesByStaleness

FIRST_ARRIVALS = 128
"""So many arrivals are stepped through first: a short run is over before a loop is loaded."""

ARRIVALS_WORTH_COMPILING = 20_000
"""Arrivals that were stepped through in this process, in all runs that the loop could do, after which it is worth the
seconds that compiling it takes. Then it is on disk, and the next process need not wait."""

MOST_PARAMS = 4096
"""The loop copies the model with every ticket; runs of larger models spend their time elsewhere."""

LARGEST_COUNT = 2**62

MOST_NUMBERS, LEAST_ROW = 2**24, 16
"""Parameters of all models that the loop makes room for, 128 MB, and what a ticket without any counts: stepping keeps
models that are equal once, and a buffer that is never filled not at all."""


class Candidate(NamedTuple):
    """A run that may be left to the loop."""

    strategy: DecidesByStaleness
    rule: ArrivalRule
    delays: NumberedDelays
    sizes: Sequence[int]


def find_candidate(problem: Problem, delays: DelayModel, plan: Plan, execution: Execution) -> Candidate | None:
    """The run as the loop needs to know it; None if the loop cannot do what it needs."""
    strategy: Any = plan.strategy
    if not promises(strategy, "arrival_rule") or not promises(delays, "as_numbers"):
        return None
    watched = execution.on_merge is not None or (plan.stopping is not None and plan.stopping.energy is not None)
    if watched or execution.rule is not None or plan.churn or problem.num_params > MOST_PARAMS:
        return None
    rule = strategy.arrival_rule(execution.server)
    if rule is None or not _is_plain(strategy.work) or not _has_room(rule, plan, problem):
        return None
    return Candidate(strategy, rule, cast(NumberedDelays, delays), client_sizes(problem))


def _has_room(rule: ArrivalRule, plan: Plan, problem: Problem) -> bool:
    """Whether the loop's whole numbers hold this run's, and its arrays all tickets and all that wait for a merge."""
    counts = (rule.tickets, rule.hold, plan.evaluation.every, plan.budget.updates or 0)
    if not all(isinstance(count, int) and count < LARGEST_COUNT for count in counts):
        return False
    slots = rule.tickets + (rule.tickets if rule.kind == "cohort" else rule.hold)
    return slots * max(problem.num_params, LEAST_ROW) <= MOST_NUMBERS


def _is_plain(work: Work) -> bool:
    """Whether clients train from the server's model, send theirs, and do nothing else."""
    special = (work.uplink, work.downlink, work.patience, work.steps, work.momentum)
    return work.start == "server" and not asks_for_measurements(work) and all(item is UNSET for item in special)
