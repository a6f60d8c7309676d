"""What is learnt: a model, its loss and each client's data."""

from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.protocol import ClientShard, Problem, ShardedProblem

__all__ = ["ClientShard", "Linear", "LinearModel", "Problem", "ShardedProblem"]
