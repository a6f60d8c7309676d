"""The paper's own regression, with the data its scripts draw under NumPy's seed 0: by how much its rate is too large.

Features, weights and noise come from one `default_rng(0)`, in this order, and then the published split: one Dirichlet
vector a sample, of which the largest entry names the client. This is the data set of the worked example on the theory
page; AsyncFed's own presets draw keyed data instead.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from asyncfed.theory.bounds import step_excess
from asyncfed.theory.curvature import client_smoothness
from asyncfed.theory.linear_data import LinearData

NUM_CLIENTS, COHORT_SIZE, EPOCHS, STEPS, BASE_RATE = 10, 5, 50, 350, 1e-3


def paper_regression(loss: Literal["least_squares", "mse"] = "least_squares") -> LinearData:
    """2,000 samples of 10 features over 10 clients, as NumPy's seed 0 gives them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-5.0, 5.0, (2000, 10))
    weights = rng.uniform(2.0, 4.0, 10)
    y = x @ weights + 5.0 + rng.normal(0.0, 0.2, 2000)
    owner = rng.dirichlet(np.full(NUM_CLIENTS, 0.5), 2000).argmax(axis=1)
    return LinearData.of_clients([(x[owner == c], y[owner == c]) for c in range(NUM_CLIENTS)], loss=loss)


def paper_excess(loss: Literal["least_squares", "mse"]) -> tuple[float, float]:
    """How many times γ₀ = 0.001 exceeds the paper's condition, counting I in epochs and in mini-batch steps.

    >>> [round(factor, 1) for factor in paper_excess("least_squares")]
    [18.1, 126.7]
    """
    smoothness = float(client_smoothness(paper_regression(loss)).max())
    factors = step_excess(
        learning_rate=BASE_RATE,
        smoothness=smoothness,
        cohort_size=COHORT_SIZE,
        local_steps=EPOCHS,
    )
    return float(factors), float(factors) * STEPS / EPOCHS


def paper_sentence() -> str:
    """The factors of the paper's own setting, in both readings of the loss and of I."""
    half, mse = paper_excess("least_squares"), paper_excess("mse")
    return (
        "The paper's own data (NumPy's seed 0, published split) miss the condition by "
        f"{half[0]:.1f}x / {half[1]:.1f}x (I = {EPOCHS} epochs / {STEPS} steps) with the 1/2 in the loss, by "
        f"{mse[0]:.1f}x / {mse[1]:.1f}x with PyTorch's MSE."
    )
