"""Which runs can be left to the compiled loop of `compiled_loop.py`: those all of whose decisions are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from asyncfed.core.record import UNSET
from asyncfed.core.types import Work
from asyncfed.delays import DelayModel
from asyncfed.delays.delay_numbers import NumberedDelays
from asyncfed.engine.execution import Execution
from asyncfed.engine.plan import Plan
from asyncfed.problems.client_measurements import asks_for_measurements
from asyncfed.problems.protocol import Problem

if TYPE_CHECKING:
    from asyncfed.strategies.arrival_rule import ArrivalRule, DecidesByStaleness

FIRST_ARRIVALS = 128
"""So many arrivals are stepped through first: a short run is over before a loop is loaded."""

ARRIVALS_WORTH_COMPILING = 20_000
"""Arrivals that were stepped through in this process, in all runs that the loop could do, after which it is worth the
seconds that compiling it takes. Then it is on disk, and the next process need not wait."""

HOOKS = ("start", "on_update", "on_lost", "observe", "merges", "refill", "job")
"""Where a strategy decides: one that inherits a rule and overrides a hook decides otherwise than the rule says."""

MOST_PARAMS = 4096
"""The loop copies the model with every ticket; runs of larger models spend their time elsewhere."""


class Candidate(NamedTuple):
    """A run that may be left to the loop."""

    strategy: DecidesByStaleness
    rule: ArrivalRule
    delays: NumberedDelays


def find_candidate(problem: Problem, delays: DelayModel, plan: Plan, execution: Execution) -> Candidate | None:
    """The run as the loop needs to know it; None if the loop cannot do what it needs."""
    strategy: Any = plan.strategy
    if not _decides_by_its_rule(type(strategy)) or not isinstance(delays, NumberedDelays):
        return None
    watched = execution.on_merge is not None or (plan.stopping is not None and plan.stopping.energy is not None)
    if watched or execution.rule is not None or plan.churn or problem.num_params > MOST_PARAMS:
        return None
    rule = strategy.arrival_rule(execution.server)
    return Candidate(strategy, rule, delays) if rule is not None and _is_plain(strategy.work) else None


def _decides_by_its_rule(strategy: type) -> bool:
    """Whether it has an `arrival_rule`, and no class between it and that one changes what the rule says in numbers."""
    for each in strategy.__mro__:
        if "arrival_rule" in vars(each):
            return True
        if any(name in vars(each) for name in HOOKS):
            return False
    return False


def _is_plain(work: Work) -> bool:
    """Whether clients train from the server's model, send theirs, and do nothing else."""
    special = (work.uplink, work.downlink, work.patience, work.steps, work.momentum)
    return work.start == "server" and not asks_for_measurements(work) and all(item is UNSET for item in special)
