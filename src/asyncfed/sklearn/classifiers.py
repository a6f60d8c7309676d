"""Classifiers in the form of scikit-learn, fitted by asynchronous federated learning."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from asyncfed.core.errors import ConfigError
from asyncfed.kernels.losses import LOGISTIC, SQUARED_HINGE
from asyncfed.kernels.softmax_losses import class_probabilities
from asyncfed.sklearn.federated_model import FederatedModel
from asyncfed.sklearn.margin_losses import SeparateLosses, SoftmaxLoss

Array = NDArray[Any]


class _Classifier(ClassifierMixin, FederatedModel):  # type: ignore[misc]
    """Classes by the largest margin."""

    def _read_classes(self, X: Any, y: Any) -> tuple[Array, NDArray[np.int64]]:
        """The features, and each row's class as a number; sets `classes_`."""
        x, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ConfigError(
                f"y holds only one class, {self.classes_[0]!r}; a classifier needs samples of at least 2 classes in "
                "the data. Check the target."
            )
        return x, numbers.astype(np.int64)

    def _check_penalty(self) -> float:
        if not (isinstance(self.C, Real) and float(self.C) > 0):
            raise ConfigError(f"C is {self.C!r}; it must be a number above 0. Large values penalise little.")
        return float(self.C)

    def decision_function(self, X: Any) -> Array:
        """The margins of new rows.

        Args:
            X: features, (n, d).

        Returns:
            With two classes the margin of the second, (n,); with more, one for each class, (n, K).
        """
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> Array:
        """The class of each new row.

        Args:
            X: features, (n, d).

        Returns:
            Classes, (n,).
        """
        margins = self.decision_function(X)
        chosen = (margins > 0).astype(np.int64) if margins.ndim == 1 else margins.argmax(axis=1)
        classes: Array = self.classes_[chosen]
        return classes


class FederatedLogisticRegression(_Classifier):
    """Logistic regression on rows that stay at their sites, like scikit-learn's `LogisticRegression`.

        min over w, b:  (1/n) Σ_i log(1 + exp(−y_i (x_i·w + b))) + 1/(2 C n) |w|²

    With more than two classes it is the softmax of one margin a class, and |w|² is over all of them. The intercepts are
    not penalised.

    Args:
        C: the inverse of the penalty's weight, above 0; `numpy.inf` for no penalty.
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
        coef_: coefficients, (1, d) for two classes, (K, d) for more.
        intercept_: intercepts, (1,) or (K,).
        classes_: the classes, (K,), in order.
        n_iter_: rounds of training, over all runs.
        optimality_: how far the model is from the pooled optimum, relative to its own length, in the norm of the
            objective's Hessian.
        run_: the last `asyncfed.Run`; `runs_` are all of them. They are left out when the estimator is pickled.
        sites_: the names of the sites, in order of their client numbers; empty if rows were dealt.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import numpy as np
    >>> x = np.arange(12.0)[:, None]
    >>> model = FederatedLogisticRegression().fit(x, ["low"] * 6 + ["high"] * 6, groups=["north", "south"] * 6)
    >>> model.predict([[2.0], [9.0]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        C: float = 1.0,
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
        self.C = C
        self.fit_intercept = fit_intercept
        self.strategy = strategy
        self.delays = delays
        self.num_clients = num_clients
        self.weighting = weighting
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedLogisticRegression:
        """Fit the model to rows of several sites.

        Args:
            X: features, (n, d): an array, or a data frame of numbers.
            y: classes, (n,), of any type.
            groups: the site that owns each row, (n,): names or numbers. None: rows are dealt to `num_clients` clients.

        Returns:
            The estimator.
        """
        x, numbers = self._read_classes(X, y)
        l2 = 1.0 / (self._check_penalty() * len(x))
        if len(self.classes_) == 2:
            self._fit_model(x, 2.0 * numbers[:, None] - 1.0, groups, SeparateLosses(LOGISTIC), l2)
        else:
            self._fit_model(x, numbers, groups, SoftmaxLoss(len(self.classes_)), l2)
            # What is added to the margins of all classes alike decides nothing: as in scikit-learn, they sum to 0.
            self.coef_ -= self.coef_.mean(axis=0)
            self.intercept_ -= self.intercept_.mean()
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class for new rows.

        Args:
            X: features, (n, d).

        Returns:
            Probabilities, (n, K), in the order of `classes_`.
        """
        margins = self._margins(X)
        return class_probabilities(np.hstack([np.zeros_like(margins), margins]) if margins.shape[1] == 1 else margins)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`.

        Args:
            X: features, (n, d).

        Returns:
            Logarithms of probabilities, (n, K).
        """
        return np.log(self.predict_proba(X))


class FederatedLinearSVC(_Classifier):
    """A linear support vector machine on rows that stay at their sites, like scikit-learn's `LinearSVC`.

        min over w, b:  (1/2n) Σ_i max(0, 1 − y_i (x_i·w + b))² + 1/(4 C n) (|w|² + b²)

    With more than two classes there is one such model a class, against all others, all trained in the same runs. As in
    `LinearSVC`, the intercept is penalised like a coefficient.

    Args:
        C: the inverse of the penalty's weight, above 0; `numpy.inf` for no penalty.
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
        coef_: coefficients, (1, d) for two classes, (K, d) for more.
        intercept_: intercepts, (1,) or (K,).
        classes_: the classes, (K,), in order.
        n_iter_: rounds of training, over all runs.
        optimality_: how far the model is from the pooled optimum, relative to its own length, in the norm of the
            objective's Hessian.
        run_: the last `asyncfed.Run`; `runs_` are all of them. They are left out when the estimator is pickled.
        sites_: the names of the sites, in order of their client numbers; empty if rows were dealt.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import numpy as np
    >>> x = np.arange(12.0)[:, None]
    >>> model = FederatedLinearSVC().fit(x, ["low"] * 6 + ["high"] * 6, groups=["north", "south"] * 6)
    >>> model.predict([[2.0], [9.0]]).tolist()
    ['low', 'high']
    """

    def __init__(
        self,
        C: float = 1.0,
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
        self.C = C
        self.fit_intercept = fit_intercept
        self.strategy = strategy
        self.delays = delays
        self.num_clients = num_clients
        self.weighting = weighting
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> FederatedLinearSVC:
        """Fit the model to rows of several sites.

        Args:
            X: features, (n, d): an array, or a data frame of numbers.
            y: classes, (n,), of any type.
            groups: the site that owns each row, (n,): names or numbers. None: rows are dealt to `num_clients` clients.

        Returns:
            The estimator.
        """
        x, numbers = self._read_classes(X, y)
        count = len(self.classes_)
        own = np.arange(1, 2) if count == 2 else np.arange(count)
        signs = np.where(numbers[:, None] == own, 1.0, -1.0)
        l2 = 0.5 / (self._check_penalty() * len(x))
        self._fit_model(x, signs, groups, SeparateLosses(SQUARED_HINGE, len(own)), l2, penalize_intercept=True)
        return self
