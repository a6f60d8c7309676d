"""What is learnt: a model, its loss and each client's data."""

from asyncfed.problems.linear import Linear, LinearModel
from asyncfed.problems.population import Population
from asyncfed.problems.protocol import ClientShard, Jobs, Problem, ProblemDescription, ShardedProblem
from asyncfed.problems.pytorch.build_torch_problem import torch_problem
from asyncfed.problems.pytorch.convolutional import Convolutional
from asyncfed.problems.pytorch.perceptron import Perceptron
from asyncfed.problems.pytorch.tensor_clients import TensorClients
from asyncfed.problems.softmax import Softmax, SoftmaxModel
from asyncfed.problems.trusted_rows import TakesRows, TrustedData, TrustedFile, TrustedRows
from asyncfed.problems.virtual_clients import FunctionClients, VirtualClients

torch = torch_problem
"""The name that `torch_problem` had before; it stays."""

__all__ = [
    "ClientShard",
    "Convolutional",
    "FunctionClients",
    "Jobs",
    "Linear",
    "LinearModel",
    "Perceptron",
    "Population",
    "Problem",
    "ProblemDescription",
    "ShardedProblem",
    "Softmax",
    "SoftmaxModel",
    "TakesRows",
    "TensorClients",
    "TrustedData",
    "TrustedFile",
    "TrustedRows",
    "VirtualClients",
    "torch",
    "torch_problem",
]
