"""A PyTorch module of your own, in twenty lines.

    python examples/own_module.py

Replace `Net` by any `nn.Module` and `rows` by whatever reads your data: one (x, y) pair a client.
"""

import numpy as np
from torch import nn

import asyncfed as af


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.outer(self.inner(x).tanh())


def rows(client: int) -> tuple[np.ndarray, np.ndarray]:
    """Is a point inside the circle? Each client sees another part of the plane."""
    x = np.random.default_rng(client).normal(0.3 * client - 0.6, 1.0, (80, 2)).astype(np.float32)
    return x, (np.square(x).sum(axis=1) < 1.5).astype(int)


problem = af.problems.torch_problem(Net, "cross_entropy", [rows(client) for client in range(5)])
experiment = af.Experiment(
    num_clients=5,
    strategy=af.strategies.FedBuff(concurrency=3, buffer_size=3, work=af.Work(epochs=2, learning_rate=0.3)),
    delays=af.delays.stragglers(),
    budget=af.Budget(rounds=60),
)
run = af.run(experiment, problem=problem)
print(f"accuracy {run.evaluations['accuracy'][0]:.2f} at first, {run.evaluations['accuracy'][-1]:.2f} at the end")
problem.export(run.params, "circle.safetensors")
print(problem.module(run.params))
