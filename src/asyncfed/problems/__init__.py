"""What is learnt: a model, its loss and each client's data."""

from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.protocol import Problem
from asyncfed.problems.torch_clients import TensorClients
from asyncfed.problems.torch_entry import torch

__all__ = ["Linear", "LinearModel", "Problem", "TensorClients", "torch"]
