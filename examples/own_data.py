"""Your own arrays, one pair a client, in twenty lines.

    python examples/own_data.py

Six hospitals of unequal size measure four things about a patient and record an outcome, 0 or 1. Replace `hospitals` by
whatever reads your data; everything below it stays.
"""

import numpy as np

import asyncfed as af


def hospitals() -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(0)
    xs = [rng.normal(0.4 * hospital, 1.0, (rows, 4)) for hospital, rows in enumerate([40, 60, 80, 120, 200, 400])]
    ys = [(x @ [1.0, -1.0, 0.5, 0.0] + rng.normal(0.0, 0.5, len(x)) > 0).astype(int) for x in xs]
    return xs, ys


clients = af.data.Clients.from_lists(*hospitals(), labels=True)
print("\n".join(af.data.measure_heterogeneity(clients).lines()))

problem = af.problems.Linear(clients, loss="logistic", l2=0.01)
experiment = af.Experiment(
    name="hospitals",
    num_clients=clients.num_clients,
    strategy=af.strategies.FedBuff(concurrency=3, buffer_size=3, work=af.Work(epochs=2, learning_rate=0.2)),
    delays=af.delays.stragglers(),
    budget=af.Budget(rounds=60),
)
run = af.run(experiment, problem=problem)

print(run.verdict, f"after {run.evaluations['elapsed'][-1]:.0f} s of virtual time")
print(f"accuracy {run.evaluations['accuracy'][-1]:.3f}, objective {run.evaluations['objective'][-1]:.4f}")
print(
    f"distance to the optimum {run.evaluations['distance'][-1]:.2f}, at the start {run.evaluations['distance'][0]:.2f}"
)
print("merged updates of each hospital:", run.participation().tolist())
