"""Eight hospitals of unequal size, whose patients differ, learn together to tell benign tumours from malignant ones.

    python examples/breast_cancer_hospitals.py

The measurements are real (scikit-learn's; needs the extra `data`), the hospitals are made up: Dirichlet shares of
patients who are alike, so that sizes and features differ. A linear support vector machine, stopped when the loss on
validation rows no longer falls.
"""

import asyncfed as af

experiment = af.Experiment(
    name="hospitals",
    num_clients=8,
    data=af.data.BreastCancer(),
    split=af.data.CovariateShift(concentration=0.5, min_size=12),
    holdout=af.data.Holdout(validation=0.2, test=0.3),
    model=af.problems.LinearModel(loss="hinge", l2=0.01, penalize_bias=False),
    strategy=af.strategies.FedAsync(
        concurrency=4, mixing=0.3, weighting="inverse_participation", work=af.Work(epochs=2, learning_rate=0.02)
    ),
    delays=af.delays.stragglers(),
    budget=af.Budget(rounds=300),
    stopping=af.Stopping(metric="validation_loss", patience=15, min_improvement=0.001),
)
print(experiment.measure_heterogeneity().verdict)

run = af.run(experiment)
print(f"\n{run.verdict}: {run.reason}")
print(f"accuracy on patients nobody trained on: {run.evaluations['test_accuracy'][-1]:.3f}\n")
print(run.clients)

run.clients.plot().savefig("breast_cancer_hospitals.png", dpi=130)
