"""How an execution is set up from a plan, or from a checkpoint. Apart from the plan, which is a description alone."""

from __future__ import annotations

from asyncfed.core.server import Server
from asyncfed.engine.checkpoint_check import check_execution_state
from asyncfed.engine.execution import Execution, own_start_function
from asyncfed.engine.model_shapes import with_model_shapes
from asyncfed.engine.plan import Checkpoint, Plan, evaluator_of, trusted_shard
from asyncfed.engine.stopping import StoppingMonitor
from asyncfed.problems.client_sizes import client_sizes
from asyncfed.problems.protocol import Problem
from asyncfed.problems.trusted_rows import rows_at_hand
from asyncfed.rules import RuleRun, Vectors
from asyncfed.rules.protocol import rule_of
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger


def set_up(problem: Problem, plan: Plan, journal: Journal, checkpoint: Checkpoint | None = None) -> Execution:
    """An execution that is ready to start, or (from a checkpoint) to continue."""
    strategy = with_model_shapes(plan.strategy, problem)
    server = Server(strategy, client_sizes(problem), plan.seed, plan.budget, plan.absent_at_start())
    if checkpoint is None:
        vectors = Vectors(problem.init(plan.seed, how=plan.init))
        ledger = Ledger(problem.num_clients, vectors.params.nbytes)
    else:
        with explain_damage(journal.path, "checkpoint"):
            check_execution_state(*checkpoint, problem.num_clients)
            vectors = Vectors.load(checkpoint[1])
            ledger = Ledger.from_snapshot(checkpoint[0]["ledger"])
    rule = rule_of(strategy)
    run = None if rule is None else RuleRun(rule, vectors.params, problem.num_clients, plan.threads)
    if run is not None and checkpoint is not None:
        with explain_damage(journal.path, "checkpoint"):
            run.load(checkpoint[1])
    evaluator = evaluator_of(problem, plan)
    own_start = own_start_function(problem, vectors, plan.seed, plan.init)
    execution = Execution(
        server,
        vectors,
        ledger,
        journal,
        evaluator,
        own_start,
        plan.divergence_norm,
        run,
        rows_at_hand(problem).local_train,
        plan.seed,
        trusted_shard(problem, plan),
    )
    if plan.stopping is not None:
        execution.stopping = StoppingMonitor(plan.stopping)
    if checkpoint is not None:
        with explain_damage(journal.path, "checkpoint"):
            execution.restore(checkpoint[0])
            execution.best = checkpoint[1].get("best")
        evaluator.last = journal.last_measurement(execution.updates)
    return execution
