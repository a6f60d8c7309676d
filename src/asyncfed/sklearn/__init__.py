"""Estimators in the form of scikit-learn, fitted by asynchronous federated learning: `fit(X, y, groups=site)`.

They end at the optimum of scikit-learn's own estimator on all rows together, which no site has to send anywhere.
"""

try:
    import sklearn as _installed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "asyncfed.sklearn needs scikit-learn 1.6 or newer, which is not installed: pip install 'asyncfed[sklearn]'."
    ) from error

from asyncfed.sklearn.classifiers import FederatedLinearSVC, FederatedLogisticRegression
from asyncfed.sklearn.regressors import FederatedLinearRegression, FederatedRidge

__all__ = ["FederatedLinearRegression", "FederatedLinearSVC", "FederatedLogisticRegression", "FederatedRidge"]
