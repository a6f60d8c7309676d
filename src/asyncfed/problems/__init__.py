"""What is learnt: a model, its loss and each client's data."""

from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.protocol import ClientShard, Problem, ShardedProblem
from asyncfed.problems.pytorch.build import torch
from asyncfed.problems.pytorch.tensor_clients import TensorClients

__all__ = ["ClientShard", "Linear", "LinearModel", "Problem", "ShardedProblem", "TensorClients", "torch"]
