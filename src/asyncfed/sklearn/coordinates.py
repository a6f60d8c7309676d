"""Coordinates in which an objective has the same curvature in every direction, or at least in every param."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Coordinates(Protocol):
    """A linear map w = T v from coordinates v to params w, both of the same length."""

    def to_params(self, v: Array) -> Array:
        """T v."""
        ...

    def gradient(self, slope: Array) -> Array:
        """Tᵀ g, the gradient in v of what has the gradient g in w."""
        ...

    def length(self, w: Array) -> float:
        """|T⁻¹ w|, the length of a model as the coordinates measure it."""
        ...


class CurvatureCoordinates:
    """T = A^(−½) for a symmetric, positive semidefinite A in blocks (B, q, q): in v, A is the identity.

    In directions that A does not see, T is zero: params do not move there.

    >>> coordinates = CurvatureCoordinates(np.array([[[4.0, 0.0], [0.0, 0.0]]]))
    >>> abs(coordinates.to_params(np.array([1.0, 1.0]))).tolist()
    [0.5, 0.0]
    """

    def __init__(self, curvature: Array) -> None:
        self._curvature = curvature
        diagonal = np.sqrt(np.maximum(np.einsum("bii->bi", curvature), 0.0))
        scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
        values, vectors = np.linalg.eigh(curvature * scale[:, :, None] * scale[:, None, :])
        seen = values > values[:, -1:] * values.shape[1] * np.finfo(np.float64).eps
        roots = np.divide(1.0, np.sqrt(np.where(seen, values, 1.0)), out=np.zeros_like(values), where=seen)
        self._map = scale[:, :, None] * vectors * roots[:, None, :]

    def to_params(self, v: Array) -> Array:
        """T v."""
        blocks = self._map
        params: Array = (blocks @ v.reshape(len(blocks), -1, 1)).ravel()
        return params

    def gradient(self, slope: Array) -> Array:
        """Tᵀ g."""
        blocks = self._map
        pulled: Array = (slope.reshape(len(blocks), 1, -1) @ blocks).ravel()
        return pulled

    def length(self, w: Array) -> float:
        """√(wᵀ A w)."""
        parts = w.reshape(len(self._curvature), -1, 1)
        return float(np.sqrt(max(0.0, float((parts * (self._curvature @ parts)).sum()))))

    def largest(self, curvature: Array) -> float:
        """The largest eigenvalue in v of another curvature (B, q, q)."""
        inside = np.swapaxes(self._map, 1, 2) @ curvature @ self._map
        return float(np.linalg.eigvalsh(inside)[:, -1].max(initial=0.0))


class ScaledCoordinates:
    """T = diag(curvature)^(−½): for models whose curvature matrix would be too large."""

    def __init__(self, diagonal: Array) -> None:
        root = np.sqrt(np.maximum(diagonal, 0.0))
        self._scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        self._root = root

    def to_params(self, v: Array) -> Array:
        """T v."""
        return self._scale * v

    def gradient(self, slope: Array) -> Array:
        """Tᵀ g."""
        return self._scale * slope

    def length(self, w: Array) -> float:
        """|T⁻¹ w|."""
        return float(np.linalg.norm(self._root * w))
