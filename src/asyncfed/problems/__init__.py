"""What is learnt: a model, its loss and each client's data."""

from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.protocol import ClientShard, Problem, ShardedProblem
from asyncfed.problems.torch_clients import TensorClients
from asyncfed.problems.torch_entry import torch

__all__ = ["ClientShard", "Linear", "LinearModel", "Problem", "ShardedProblem", "TensorClients", "torch"]
