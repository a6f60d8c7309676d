"""What the estimators share: rows by site, the federation, and the model it ends with."""

from __future__ import annotations

import warnings
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from asyncfed.core.errors import ConfigError
from asyncfed.sklearn.federated_fit import FitSettings, fit_federated, merges_by_weight
from asyncfed.sklearn.margin_losses import MarginLoss
from asyncfed.sklearn.site_rows import pack_sites
from asyncfed.sklearn.stage_problem import SiteObjective

Array = NDArray[Any]

_MOST_SEED = 2**31 - 1


@cache
def _thread_pools() -> ThreadpoolController:
    """Those of the libraries that are loaded; finding them takes longer than a small fit."""
    return ThreadpoolController()


class FederatedModel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the estimators share: rows by site, the federation, and the model it ends with."""

    coef_: Any
    intercept_: Any

    def _fit_model(
        self, x: Array, y: Array, groups: Any, loss: MarginLoss, l2: float, penalize_intercept: bool = False
    ) -> None:
        """Fit K margins a row, and set the attributes that all estimators have."""
        settings = self._settings()
        rows = pack_sites(
            x,
            y,
            groups,
            num_clients=self.num_clients,
            weighting=self.weighting,
            fit_intercept=bool(self.fit_intercept),
            centred=not penalize_intercept,
        )
        penalty = np.tile(rows.penalties(l2, penalize_intercept), loss.outputs)
        objective = SiteObjective(rows, loss, penalty, merges_by_weight(settings.strategy))
        # Products of long and narrow matrices are slower on several threads than on one, and their bits may depend on
        # how many there are.
        with _thread_pools().limit(limits=1, user_api="blas"):
            result = fit_federated(objective, settings)
        self.coef_, self.intercept_ = rows.raw_model(result.model.reshape(loss.outputs, -1))
        self.n_iter_ = result.rounds
        self.optimality_ = result.optimality
        self.runs_ = result.runs
        self.run_ = result.runs[-1] if result.runs else None
        self.sites_ = np.array(rows.names)
        if not result.converged:
            warnings.warn(
                f"{settings.name} is {result.optimality:.2g} from the pooled optimum, relative to its own length; "
                f"tol is {settings.tol:g}. {self._advice(result.rounds)}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _advice(self, rounds: int) -> str:
        if rounds >= self.max_rounds:
            return f"All {rounds} rounds were spent: raise max_rounds or tol."
        return (
            f"After {rounds} rounds its strategy came no nearer: take one that does not stop short where clients "
            'differ, such as "afl" (every client\'s latest model) or "sync", or a smaller learning rate.'
        )

    def _settings(self) -> FitSettings:
        if not (isinstance(self.max_rounds, Integral) and int(self.max_rounds) >= 1):
            raise ConfigError(f"max_rounds is {self.max_rounds!r}; it must be a whole number of at least 1.")
        if not (isinstance(self.tol, Real) and float(self.tol) > 0):
            raise ConfigError(f"tol is {self.tol!r}; it must be a number above 0.")
        state = self.random_state
        seed = int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(_MOST_SEED))
        name = type(self).__name__
        return FitSettings(
            self.strategy, self.delays, seed, int(self.max_rounds), float(self.tol), self.weighting, name
        )

    def _margins(self, X: Any) -> Array:
        """(n, K) margins of new rows."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False)
        coefficients = np.atleast_2d(self.coef_)
        margins: Array = rows @ coefficients.T + self.intercept_
        return margins

    def __getstate__(self) -> dict[str, Any]:
        """Runs stay behind: they hold a database in memory, and all clients' rows."""
        state: dict[str, Any] = dict(super().__getstate__())
        for name in ("run_", "runs_"):
            state.pop(name, None)
        return state
