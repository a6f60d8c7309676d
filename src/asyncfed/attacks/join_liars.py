"""Liars join a problem, leave it, and a node lies by itself."""

from __future__ import annotations

from typing import cast

from asyncfed.attacks.coalition import Coalition
from asyncfed.attacks.liars import Liars
from asyncfed.attacks.lying_problem import LyingProblem
from asyncfed.attacks.lying_rows import poisoned_problem, targets_of
from asyncfed.attacks.lying_shard import LyingShard
from asyncfed.attacks.problem_parts import lying_problem_of
from asyncfed.attacks.protocol import Attack
from asyncfed.core.errors import ConfigError
from asyncfed.problems.protocol import Initialisation, Problem, ShardedProblem, as_sharded_problem


def with_liars(problem: Problem, liars: Liars, seed: int, how: Initialisation = "zeros") -> Problem:
    """The problem with some clients that lie; itself, if it has these liars already or nobody lies.

    Args:
        problem: what is learnt. What it measures besides (on single clients, on rows) and whether it has shards, what
            is given back has too.
        liars: who lies, and how.
        seed: the run's, which decides who lies.
        how: how the run's first model is made.

    Raises:
        ConfigError: there cannot be such liars, or the problem has others already.
    """
    before = liars_of(problem)
    if before is not None:
        if (before.description, before.seed) != (liars, seed):
            raise ConfigError(
                "The problem given has liars of its own, and the experiment others. Give the honest problem, or leave "
                "the experiment's attack out."
            )
        return problem
    members = liars.choose(problem.num_clients, seed)
    if not members:
        return problem
    liars.attack.check(targets_of(problem))
    coalition = Coalition(liars, seed, problem.num_clients, problem.init(seed, how=how), members)
    return lying_problem_of(problem, coalition)


def liars_of(problem: Problem) -> Coalition | None:
    """Who lies in this problem; None if nobody does."""
    coalition: Coalition | None = getattr(problem, "coalition", None)
    return coalition


def without_liars(problem: Problem) -> Problem:
    """The problem with honest clients only in place of liars."""
    while liars_of(problem) is not None:
        problem = cast(LyingProblem, problem).inner  # of workers, the problem with liars
    return problem


def lying_node(problem: ShardedProblem, client: int, attack: Attack, seed: int, how: Initialisation) -> LyingShard:
    """The part of one client that lies by itself, with its own data and no other's: a node of a real federation.

    Args:
        problem: what is learnt, with this client's rows.
        client: its number in the problem.
        attack: how it lies.
        seed: the run's.
        how: how the run's first model is made.

    Raises:
        ConfigError: the attack needs other liars, or other clients' data, or cannot be used on this problem.
    """
    if attack.least_liars > 1 or attack.knows == "all":
        raise ConfigError(
            f"attack: {type(attack).__name__} needs the data of other clients, and a node has its own alone. Take an "
            "attack that can do with those."
        )
    attack.check(targets_of(problem))
    described = Liars(attack=attack, clients=(client,))
    coalition = Coalition(described, seed, problem.num_clients, problem.init(seed, how=how), (client,))
    poisoned = None
    if attack.poisons_rows:
        made = poisoned_problem(problem, attack, (client,), coalition.secret)
        poisoned = as_sharded_problem(made).shard(0)
    return LyingShard(client, {client: problem.shard(client)}, coalition, poisoned)
