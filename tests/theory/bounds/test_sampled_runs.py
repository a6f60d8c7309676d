"""Bounds on losses that are not quadratic, against many seeded runs: R* on logistic losses, and the hinge's bound."""

import numpy as np
import pytest

from asyncfed.theory import bounds

RUNS = 400


def logistic_problem(chance, *, num_clients=3, rows=5, size=2, penalty=0.3):
    """Signed rows (C, n, d), the optimum of the mean of the clients' penalised losses, and R*'s constants of them."""
    signed = chance.normal(size=(num_clients, rows, size)) + chance.normal(size=(num_clients, 1, size))
    optimum = np.zeros(size)
    for _ in range(50):
        odds = 1 / (1 + np.exp(signed @ optimum))
        slope = -np.einsum("cr,cri->i", odds, signed) / (num_clients * rows) + penalty * optimum
        hessian = np.einsum("cr,cri,crj->ij", odds * (1 - odds), signed, signed) / (num_clients * rows)
        optimum = optimum - np.linalg.solve(hessian + penalty * np.eye(size), slope)
    samples = -(1 / (1 + np.exp(signed @ optimum)))[..., None] * signed + penalty * optimum
    means = samples.mean(axis=1)
    constants = {
        "smoothness": float(np.max(np.sum(signed**2, axis=-1))) / 4 + penalty,
        "strong_convexity": penalty,
        "gradient_variance": float(np.mean(np.sum((samples - means[:, None]) ** 2, axis=-1))),
        "optimum_heterogeneity": float(np.mean(np.sum(means**2, axis=-1))),
        "num_clients": num_clients,
    }
    return signed, optimum, constants


def stale_runs(chance, gradient, start, *, draw, updates, staleness, local_steps, rate):
    """RUNS paths of one-by-one merged deltas of clients drawn uniformly, each τ versions old, as (T+1, RUNS, d)."""
    models = [np.tile(start, (RUNS, 1))]
    for t in range(updates):
        base = models[t - min(t, staleness)]
        local, client = base, draw(chance)
        for _ in range(local_steps):
            local = local - rate * gradient(chance, client, local)
        models.append(models[t] + local - base)
    return np.array(models)


@pytest.mark.parametrize(("seed", "staleness", "local_steps"), [(0, 0, 1), (1, 2, 1), (2, 3, 4), (3, 1, 3)])
def test_r_star_holds_for_single_samples_of_logistic_losses(seed, staleness, local_steps):
    chance, penalty, updates = np.random.default_rng(seed), 0.3, 300
    signed, optimum, constants = logistic_problem(chance, penalty=penalty)
    clients, rows, _ = signed.shape

    def gradient(chance, client, local):
        z = signed[client, chance.integers(rows, size=RUNS)]
        return -z / (1 + np.exp(np.sum(z * local, axis=1)))[:, None] + penalty * local

    rate = bounds.largest_stale_learning_rate(
        smoothness=constants["smoothness"], staleness=staleness, local_steps=local_steps
    )
    start = optimum + np.array([1.0, -1.0])
    models = stale_runs(
        chance,
        gradient,
        start,
        draw=lambda chance: chance.integers(clients, size=RUNS),
        updates=updates,
        staleness=staleness,
        local_steps=local_steps,
        rate=rate,
    )
    run = bounds.StaleSetting(
        **constants,
        cohort_size=1,
        local_steps=local_steps,
        learning_rate=rate,
        staleness=staleness,
        start_distance_squared=2.0,
    )
    horizon = np.arange(updates)
    assert_below(np.sum((models[1:] - optimum) ** 2, axis=-1), bounds.r_star_last(run, last_index=horizon))

    def objective(model):
        losses = np.log1p(np.exp(-np.einsum("crd,...d->...cr", signed, model)))
        return losses.mean(axis=(-1, -2)) + penalty / 2 * np.sum(model**2, axis=-1)

    weighted, weight, averages = np.zeros_like(models[0]), 0.0, []
    ratio = 1 - penalty * rate * local_steps / 2
    for model in models[:-1]:
        weighted, weight = ratio * weighted + model, ratio * weight + 1
        averages.append(weighted / weight)
    assert_below(objective(np.array(averages)) - objective(optimum), bounds.r_star_averaged(run, last_index=horizon))


def assert_below(samples, bound):
    """The mean over runs is below the bound, four standard errors granted; and these are small beside the bound."""
    errors = samples.std(axis=1) / samples.shape[1] ** 0.5
    assert np.all(samples.mean(axis=1) - 4 * errors <= bound)
    assert np.all(4 * errors <= 0.2 * bound)


@pytest.mark.parametrize(("seed", "staleness", "local_steps"), [(0, 0, 1), (1, 3, 2), (2, 5, 5)])
def test_the_hinge_bound_holds(seed, staleness, local_steps):
    chance, updates = np.random.default_rng(seed), 200
    signed = chance.normal(loc=[1.5, 0.5], size=(3, 4, 2))

    def objective(model):
        return np.maximum(0, 1 - np.einsum("crd,...d->...cr", signed, model)).mean(axis=(-1, -2))

    def gradient(chance, client, local):
        z = signed[client]
        return -np.einsum("nr,nrd->nd", np.einsum("nrd,nd->nr", z, local) < 1, z) / z.shape[1]

    grid = np.stack(np.meshgrid(np.linspace(-3, 6, 451), np.linspace(-3, 6, 451)), axis=-1)
    values = objective(grid)
    best = grid[np.unravel_index(values.argmin(), values.shape)]
    rate = 0.05 / local_steps
    models = stale_runs(
        chance,
        gradient,
        np.zeros(2),
        draw=lambda chance: chance.integers(3, size=RUNS),
        updates=updates,
        staleness=staleness,
        local_steps=local_steps,
        rate=rate,
    )
    averages = np.cumsum(models, axis=0) / np.arange(1, updates + 2)[:, None, None]
    gaps = objective(averages) - values.min()
    bound = bounds.hinge_bound(
        start_distance_squared=float(best @ best),
        effective_step=rate * local_steps,
        last_index=np.arange(updates + 1),
        largest_subgradient=float(np.linalg.norm(signed, axis=-1).max()),
        staleness=staleness,
        local_steps=local_steps,
    )
    assert_below(gaps, bound)
