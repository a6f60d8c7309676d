"""What one stage of a fit learns: the estimator's objective in coordinates of the stage's choice."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET
from asyncfed.core.types import Work
from asyncfed.problems.protocol import Initialisation, Jobs
from asyncfed.sklearn.coordinates import Coordinates
from asyncfed.sklearn.margin_losses import MarginLoss
from asyncfed.sklearn.site_rows import SiteRows

Array = NDArray[Any]


class SiteObjective:
    """F(w) = Σ_c a_c (1/n_c) Σ_{i in c} f(z_i · wᵀ, y_i) + ½ Σ_j penalty_j w_j², a mean of one function a client.

    If strategies merge all clients alike, client c's is C a_c times its mean loss, with the whole penalty: their mean
    is F. If they merge clients by their rows, it is the mean loss itself, and the mean with the weights a_c is F; that
    is better where sizes differ, because no client's function is then steeper than others for having more rows.

    Args:
        rows: the clients' rows and weights.
        loss: f, of K margins a row.
        penalty: of each param, (K · p,).
        merged_by_weight: whether clients are merged with the weights a_c, or alike.
    """

    def __init__(self, rows: SiteRows, loss: MarginLoss, penalty: Array, merged_by_weight: bool = False) -> None:
        self.rows = rows
        self.loss = loss
        self.penalty = penalty
        self.factors = np.ones(rows.num_clients) if merged_by_weight else rows.weights * rows.num_clients
        self.shares = rows.weights / self.factors
        self._row_weights = np.repeat(rows.weights / rows.sizes, rows.sizes)

    def pooled(self, w: Array) -> tuple[float, Array]:
        """F(w) and its gradient."""
        return self._measure(w, self.rows.z, self.rows.y, self._row_weights)

    def of_client(self, w: Array, client: int, chosen: Any = None) -> tuple[float, Array]:
        """The client's function and its gradient, over all its rows or the chosen ones of them."""
        z, y = self.client_rows(client)
        if chosen is not None:
            z, y = z[chosen], y[chosen]
        return self._measure(w, z, y, np.full(len(z), self.factors[client] / len(z)))

    def slope_of_client(self, w: Array, client: int, chosen: Any = None) -> Array:
        """The gradient of `of_client` alone."""
        z, y = self.client_rows(client)
        if chosen is not None:
            z, y = z[chosen], y[chosen]
        slopes = self.loss.slopes(z @ w.reshape(self.loss.outputs, -1).T, y)
        gradient: Array = (slopes.T @ z).ravel() * (self.factors[client] / len(z)) + self.penalty * w
        return gradient

    def client_rows(self, client: int) -> tuple[Array, Array]:
        """Views of the client's z and y."""
        part = slice(self.rows.offsets[client], self.rows.offsets[client + 1])
        return self.rows.z[part], self.rows.y[part]

    def client_curvatures(self, w: Array, highest: float) -> Iterator[Array]:
        """Of each client's function: (1 − highest) times its Hessian at w, and `highest` times what none exceeds."""
        for client in range(self.rows.num_clients):
            z, y = self.client_rows(client)
            part: Any = 0.0
            if highest > 0.0:
                part = highest * self.loss.largest_curvature(z)
            if highest < 1.0:
                part = part + (1.0 - highest) * self.loss.curvature(z, y, w.reshape(self.loss.outputs, -1))
            part *= self.factors[client]
            diagonal = np.einsum("bii->bi", part)
            diagonal += self.penalty.reshape(diagonal.shape)
            yield part

    def _measure(self, w: Array, z: Array, y: Array, weights: Array) -> tuple[float, Array]:
        margins = z @ w.reshape(self.loss.outputs, -1).T
        value = float(weights @ self.loss.values(margins, y)) + 0.5 * float(self.penalty @ w**2)
        gradient = ((weights[:, None] * self.loss.slopes(margins, y)).T @ z).ravel() + self.penalty * w
        return value, gradient


class StageProblem:
    """F(base + T v) as a `Problem` with params v, which are zero at first.

    Args:
        objective: F.
        coordinates: T.
        base: the model (K · p,) that the stage begins with.
    """

    def __init__(self, objective: SiteObjective, coordinates: Coordinates, base: Array) -> None:
        self.objective = objective
        self.coordinates = coordinates
        self.base = base
        self.num_examples: NDArray[np.int64] = objective.rows.sizes.astype(np.int64)

    @property
    def num_clients(self) -> int:
        """C."""
        return self.objective.rows.num_clients

    @property
    def num_params(self) -> int:
        """K · p."""
        return len(self.base)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64."""
        return np.dtype(np.float64)

    @property
    def client_names(self) -> tuple[str, ...]:
        """The sites; empty if rows were dealt."""
        return self.objective.rows.names

    def model_at(self, v: Array) -> Array:
        """The model (K · p,) that params v stand for."""
        return self.base + self.coordinates.to_params(np.asarray(v, dtype=np.float64))

    def init(self, seed: int, client: int | None = None, how: Initialisation = "zeros") -> Array:
        """Zeros: the stage's base. There is no other start."""
        return np.zeros(self.num_params)

    def local_train(self, params: Array, client: int, work: Work, key: int) -> Array:
        """The client's params after its local work."""
        return self._path(np.asarray(params), client, work, key, None)[-1]

    def local_train_many(self, jobs: Jobs, threads: int = 1) -> Array:
        """k trainings, one by one."""
        trained = np.empty_like(jobs.starts, dtype=np.float64)
        for place, path in enumerate(self._paths(jobs)):
            trained[place] = path[-1]
            if jobs.steps_done is not None:
                jobs.steps_done[place] = len(path) - 1
        return trained

    def local_path_moments(self, jobs: Jobs, threads: int = 1) -> tuple[Array, Array, Array]:
        """(I, Σ (y_i − y_0), Σ |y_i − y_0|²) of each training."""
        gaps = [np.array(path[:-1]) - path[0] for path in self._paths(jobs)]
        sums, squares = [gap.sum(axis=0) for gap in gaps], [float((gap**2).sum()) for gap in gaps]
        return np.array([float(len(gap)) for gap in gaps]), np.array(sums), np.array(squares)

    def evaluate(self, params: Array, threads: int = 1) -> dict[str, float]:
        """`objective`, and `gradient_norm`: that of F in v, over the length of the model."""
        model = self.model_at(params)
        value, slope = self.objective.pooled(model)
        length = self.coordinates.length(model)
        norm = float(np.linalg.norm(self.coordinates.gradient(slope)))
        return {"objective": value, "pooled_loss": value, "gradient_norm": norm / length if length > 0 else norm}

    def client_losses(self, params: Array, threads: int = 1) -> Array:
        """The value of each client's function, shape (C,); their mean is F."""
        return np.array([self.client_loss(params, client) for client in range(self.num_clients)])

    def client_loss(self, params: Array, client: int) -> float:
        """The value of one client's function."""
        return self.objective.of_client(self.model_at(params), client)[0]

    def gradient(self, params: Array, client: int) -> Array:
        """Its gradient in v."""
        return self.coordinates.gradient(self.objective.slope_of_client(self.model_at(params), client))

    def optimum(self) -> Array | None:
        """None: it is what the fit is looking for."""
        return None

    def fingerprint(self) -> str:
        """SHA-256 of rows, weights, penalties, loss and base."""
        rows, digest = self.objective.rows, sha256(repr(self.objective.loss).encode())
        for array in (rows.z, rows.y, rows.offsets, rows.weights, self.objective.penalty, self.base):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _paths(self, jobs: Jobs) -> Iterator[list[Array]]:
        corrections = [None] * len(jobs.clients) if jobs.corrections is None else list(jobs.corrections)
        for job in zip(jobs.starts, jobs.clients, jobs.works, jobs.keys, corrections, strict=True):
            yield self._path(*job)

    def _path(self, start: Array, client: int, work: Work, key: int, correction: Array | None) -> list[Array]:
        """Every point of a training: the equation of `Work`, with the rows in the order of the SGD kernels."""
        if work.momentum or work.patience is not UNSET:
            raise ConfigError(
                f"strategy.work has momentum {work.momentum!r} and patience {work.patience!r}; scikit-learn's "
                "estimators here are trained by plain steps. Leave both out."
            )
        size = int(self.num_examples[client])
        path = [np.array(start, dtype=np.float64)]
        for epoch, chosen in _batches(work, size, key):
            v, rate = path[-1], work.learning_rate / (epoch + 1.0) ** work.decay
            slope = self.coordinates.gradient(self.objective.slope_of_client(self.model_at(v), client, chosen))
            if work.proximal:
                slope += work.proximal * (v - path[0])
            if correction is not None:
                slope += correction
            path.append(v - rate * slope)
        return path


def _batches(work: Work, size: int, key: int) -> Iterator[tuple[int, Array | None]]:
    """(local epoch, rows) of every step; None for all rows, whose order makes no difference."""
    steps = work.count_steps(size)
    if work.batch_size >= size:
        yield from ((epoch, None) for epoch in range(steps))
        return
    from asyncfed.kernels.row_orders import epoch_orders  # when first needed: it takes a while to load

    per_epoch = -(-size // work.batch_size)
    orders = epoch_orders(key, size, -(-steps // per_epoch))
    for step in range(steps):
        epoch, first = step // per_epoch, step % per_epoch * work.batch_size
        yield epoch, orders[epoch, first : first + work.batch_size]
