"""How many local steps clients may make before what they learn is of no use to the others."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from asyncfed.theory.blocks import dense

FEWEST, MOST = 4, 32
FACTOR = 1.5
MOST_CLIENTS = 64
MOST_FEATURES = 500
STEPS_OF_WIDE_DATA = 8


class _Rows(Protocol):
    @property
    def x(self) -> Any: ...
    @property
    def offsets(self) -> Any: ...


def local_steps(rows: _Rows, rate: float, largest_curvature: float, fit_bias: bool = True) -> int:
    """1.5 / (rate · δ), from 4 to 32, δ the mean over clients of ‖H_c − H̄‖: how much their curvatures differ.

    The corrections of SCAFFOLD make clients agree on the gradient where they start; after s steps their gradients
    differ by their curvatures, little as long as s · rate · δ is small (Karimireddy et al., ICML 2020, section 6).
    Where clients have the same rows, many steps are safe; where each has features of its own, few. H_c, which is
    k Z_cᵀ Z_c / n_c, bounds the Hessian of a client's loss. Of more than 64 clients 64 are looked at, evenly spaced;
    with more than 500 features it is 8 steps.

    Args:
        rows: the clients' features `x` (n, d) and `offsets`, such as a `Linear` problem.
        rate: the learning rate, above 0.
        largest_curvature: k > 0, the largest second derivative of the loss in the margin.
        fit_bias: whether there is a bias.

    Returns:
        The number of steps.
    """
    clients, features = len(rows.offsets) - 1, int(rows.x.shape[1])
    if features > MOST_FEATURES:
        return STEPS_OF_WIDE_DATA
    chosen = np.unique(np.linspace(0, clients - 1, min(clients, MOST_CLIENTS)).astype(int))
    curvatures = np.stack([_curvature(rows, int(client), fit_bias) for client in chosen])
    differences = np.linalg.eigvalsh(curvatures - curvatures.mean(axis=0))
    spread = largest_curvature * float(np.abs(differences).max(axis=1).mean())
    allowed = FACTOR / (rate * spread) if spread > 0 else np.inf
    return int(np.clip(allowed, FEWEST, MOST))


def _curvature(rows: _Rows, client: int, fit_bias: bool) -> np.ndarray:
    """Z_cᵀ Z_c / n_c."""
    x = dense(rows.x[rows.offsets[client] : rows.offsets[client + 1]]).astype(np.float64, copy=False)
    features = x.shape[1]
    found = np.empty((features + fit_bias, features + fit_bias))
    found[:features, :features] = x.T @ x / len(x)
    if fit_bias:
        found[-1, :features] = found[:features, -1] = x.mean(axis=0)
        found[-1, -1] = 1.0
    return found
