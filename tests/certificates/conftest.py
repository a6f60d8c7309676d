"""A small regression that certificates are made of."""

import pytest

import asyncfed as af

ALL_ROWS = 10_000


@pytest.fixture
def small_experiment():
    """The paper's regression with 3 features and 400 rows, full gradients at a constant rate. A function."""

    def make(strategy="sync", *, rounds=4, work=None, **changes):
        base = af.presets.regression(rounds=rounds, strategy=strategy, reading="published")
        work = work or af.Work(epochs=4, batch_size=ALL_ROWS, learning_rate=1e-3)
        strategy = af.replace(base.strategy, work=work, schedule=af.ConstantRate(), **changes)
        data = af.data.PaperRegression(num_samples=400, num_features=3)
        return af.replace(base, data=data, strategy=strategy)

    return make
