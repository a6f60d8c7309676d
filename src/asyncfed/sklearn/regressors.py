"""Regressors in the form of scikit-learn, fitted by asynchronous federated learning."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import LEAST_SQUARES
from asyncfed.sklearn.federated_model import FederatedModel
from asyncfed.sklearn.margin_losses import SeparateLosses

Array = NDArray[Any]


class _Regressor(RegressorMixin, FederatedModel):  # type: ignore[misc]
    """Least squares, with or without a penalty."""

    def _fit_least_squares(self, X: Any, y: Any, groups: Any, alpha: float) -> None:
        x, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        # Around their mean, targets of a large offset lose no digits; the intercept takes it back.
        middle = float(targets.mean()) if self.fit_intercept else 0.0
        loss = SeparateLosses(LEAST_SQUARES)
        self._fit_model(x, (targets - middle)[:, None], groups, loss, alpha / len(targets))
        self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0] + middle)

    def predict(self, X: Any) -> Array:
        """The model's values for new rows.

        Args:
            X: features, (n, d).

        Returns:
            Values, (n,).
        """
        return self._margins(X)[:, 0]


class FederatedLinearRegression(_Regressor):
    """Least squares on rows that stay at their sites, like scikit-learn's `LinearRegression`.

        min over w, b:  (1/2n) Σ_i (x_i·w + b − y_i)²

    Where columns depend on each other, many models are as good; it is one of them.

    Args:
        fit_intercept: whether there is an intercept.
        strategy: who trains when and how models are merged: a name, such as "fedbuff", or a strategy of `asyncfed`.
            By name, every ticket is one step over all rows of its client, at a safe rate. "afl", the default, and
            "sync" end at the pooled optimum; where clients differ, most others stop short of it, and a
            `ConvergenceWarning` says so. The learning rate of a strategy of your own counts in coordinates in which the
            objective curves by 1 in every direction.
        delays: how long work takes: a name ("none", "laptop", "stragglers", "heavy_tailed") or a delay description.
        num_clients: to how many clients rows are dealt in turn when `fit` is given no groups, 1 or more.
        weighting: "rows": every row counts the same, as in scikit-learn; "clients": every site does, however large.
        max_rounds: of federated training in all, 1 or more.
        tol: above 0; the fit ends when `optimality_` is as small.
        random_state: an int, a RandomState or None, of everything random.

    Attributes:
        coef_: coefficients, (d,).
        intercept_: the intercept, a float.
        n_iter_: rounds of training, over all runs.
        optimality_: how far the model is from the pooled optimum, relative to its own length, in the norm of the
            objective's Hessian.
        run_: the last `asyncfed.Run`; `runs_` are all of them. They are left out when the estimator is pickled.
        sites_: the names of the sites, in order of their client numbers; empty if rows were dealt.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import numpy as np
    >>> x = np.arange(12.0)[:, None]
    >>> model = FederatedLinearRegression().fit(x, 3 * x[:, 0] + 1, groups=["north", "south"] * 6)
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([3.0], 1.0)
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        strategy: Any = "afl",
        delays: Any = "laptop",
        num_clients: int = 5,
        weighting: str = "rows",
        max_rounds: int = 10_000,
        tol: float = 1e-6,
        random_state: Any = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.strategy = strategy
        self.delays = delays
        self.num_clients = num_clients
        self.weighting = weighting
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedLinearRegression:
        """Fit the model to rows of several sites.

        Args:
            X: features, (n, d): an array, or a data frame of numbers.
            y: targets, (n,).
            groups: the site that owns each row, (n,): names or numbers. None: rows are dealt to `num_clients` clients.

        Returns:
            The estimator.
        """
        self._fit_least_squares(X, y, groups, 0.0)
        return self


class FederatedRidge(_Regressor):
    """Ridge regression on rows that stay at their sites, like scikit-learn's `Ridge`.

        min over w, b:  (1/2n) Σ_i (x_i·w + b − y_i)² + (alpha/2n) |w|²

    Args:
        alpha: the weight of the penalty, 0 or more.
        fit_intercept: whether there is an intercept.
        strategy: who trains when and how models are merged: a name, such as "fedbuff", or a strategy of `asyncfed`.
            By name, every ticket is one step over all rows of its client, at a safe rate. "afl", the default, and
            "sync" end at the pooled optimum; where clients differ, most others stop short of it, and a
            `ConvergenceWarning` says so. The learning rate of a strategy of your own counts in coordinates in which the
            objective curves by 1 in every direction.
        delays: how long work takes: a name ("none", "laptop", "stragglers", "heavy_tailed") or a delay description.
        num_clients: to how many clients rows are dealt in turn when `fit` is given no groups, 1 or more.
        weighting: "rows": every row counts the same, as in scikit-learn; "clients": every site does, however large.
        max_rounds: of federated training in all, 1 or more.
        tol: above 0; the fit ends when `optimality_` is as small.
        random_state: an int, a RandomState or None, of everything random.

    Attributes:
        coef_: coefficients, (d,).
        intercept_: the intercept, a float.
        n_iter_: rounds of training, over all runs.
        optimality_: how far the model is from the pooled optimum, relative to its own length, in the norm of the
            objective's Hessian.
        run_: the last `asyncfed.Run`; `runs_` are all of them. They are left out when the estimator is pickled.
        sites_: the names of the sites, in order of their client numbers; empty if rows were dealt.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import numpy as np
    >>> x = np.arange(12.0)[:, None]
    >>> model = FederatedRidge(alpha=0.1, strategy="sync").fit(x, 3 * x[:, 0], groups=["north", "south"] * 6)
    >>> model.coef_.round(3).tolist()
    [2.998]
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        strategy: Any = "afl",
        delays: Any = "laptop",
        num_clients: int = 5,
        weighting: str = "rows",
        max_rounds: int = 10_000,
        tol: float = 1e-6,
        random_state: Any = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.strategy = strategy
        self.delays = delays
        self.num_clients = num_clients
        self.weighting = weighting
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedRidge:
        """Fit the model to rows of several sites.

        Args:
            X: features, (n, d): an array, or a data frame of numbers.
            y: targets, (n,).
            groups: the site that owns each row, (n,): names or numbers. None: rows are dealt to `num_clients` clients.

        Returns:
            The estimator.
        """
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < np.inf):
            raise ConfigError(f"alpha is {self.alpha!r}; it must be 0 or a positive number.")
        self._fit_least_squares(X, y, groups, float(self.alpha))
        return self
