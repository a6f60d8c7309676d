"""R*, R, R-conv and the corrected theorem against the exact expectation.

Clients are quadratics, so one round is an affine map of the last few models, drawn from finitely many; mean and second
moment of (x_t, …, x_{t−τ}, weighted sum of x) are carried along without sampling.
"""

from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.theory import bounds

seeds = st.integers(0, 2**32 - 1)
HORIZON = 60


class Move:
    """What one client adds to the server's model: linear @ (the model it was given) + constant + noise."""

    def __init__(self, client, linear, constant, noise):
        self.client, self.linear, self.constant, self.noise = client, linear, constant, noise


def moments(outcomes, *, server_step, staleness, delay_of, start, weight_ratio, horizon=HORIZON):
    """E‖x_t‖² for t = 0 … horizon and E[s_t s_t'] of s_t = Σ_{u≤t} r^(t−u) x_u; the optimum is 0.

    `outcomes`: equally likely cohorts, each a list of moves. Blocks of the state: x_t, x_{t−1}, …, x_{t−τ}, s_t.
    """
    size, blocks = len(start), staleness + 2
    state = size * blocks
    mean = np.concatenate([np.tile(start, blocks - 1), start])
    second = np.outer(mean, mean)
    distances, sums, maps = [start @ start], [np.outer(start, start)], {}
    for t in range(horizon):
        delays = tuple(min(t, delay_of(t, client)) for client in range(1 + max(m.client for o in outcomes for m in o)))
        if delays not in maps:
            maps[delays] = affine_maps(outcomes, delays, server_step, size, state, weight_ratio)
        linear, constant, noise = maps[delays]
        moved = linear @ mean
        cross = np.einsum("oi,oj->oij", moved, constant)
        spread = linear @ second @ linear.transpose(0, 2, 1) + cross + cross.transpose(0, 2, 1)
        second = (spread + np.einsum("oi,oj->oij", constant, constant)).mean(axis=0) + noise
        mean = (moved + constant).mean(axis=0)
        distances.append(np.trace(second[:size, :size]))
        sums.append(second[-size:, -size:].copy())
    return np.array(distances), sums


def affine_maps(outcomes, delays, server_step, size, state, weight_ratio):
    linear, constant = np.zeros((len(outcomes), state, state)), np.zeros((len(outcomes), state))
    noise = np.zeros((state, state))
    for number, cohort in enumerate(outcomes):
        linear[number, :size, :size] = np.eye(size)
        for block in range(1, state // size - 1):
            linear[number, block * size : (block + 1) * size, (block - 1) * size : block * size] = np.eye(size)
        for move in cohort:
            share, column = server_step / len(cohort), delays[move.client] * size
            linear[number, :size, column : column + size] += share * move.linear
            constant[number, :size] += share * move.constant
            noise[:size, :size] += share**2 * move.noise / len(outcomes)
        linear[number, -size:] = linear[number, :size]
        linear[number, -size:, -size:] += weight_ratio * np.eye(size)
        constant[number, -size:] = constant[number, :size]
    both = np.r_[0:size, state - size : state]
    noise[np.ix_(both, both)] = np.tile(noise[:size, :size], (2, 2))
    return linear, constant, noise


def averaged_gap(sums, hessian, ratio):
    """E F(x̄_T) − F* for T = 0 … from the second moments of the weighted sums."""
    scale = np.cumsum(ratio ** np.arange(len(sums)))
    return np.array([np.trace(hessian @ square) / 2 for square in sums]) / scale**2


def random_clients(chance, *, num_clients, size):
    """Hessians and gradients at the optimum 0, which add up to 0."""
    hessians = []
    for _ in range(num_clients):
        basis, _ = np.linalg.qr(chance.normal(size=(size, size)))
        hessians.append(basis * 10 ** chance.uniform(-1.5, 0.5, size) @ basis.T)
    gradients = chance.normal(size=(num_clients, size)) * chance.choice([0, 0.1, 1])
    return hessians, gradients - gradients.mean(axis=0)


def noisy_local_training(client, hessian, gradient, noise, rates):
    """I steps y − λ_i (H y + g + ξ_i) as one affine map with noise."""
    size = len(gradient)
    linear, constant, spread = np.eye(size), np.zeros(size), np.zeros((size, size))
    for rate in rates:
        shrink = np.eye(size) - rate * hessian
        linear, constant = shrink @ linear, shrink @ constant - rate * gradient
        spread = shrink @ spread @ shrink.T + rate**2 * noise
    return Move(client, linear - np.eye(size), constant, spread)


DELAYS = {
    "constant": lambda staleness: lambda t, client: staleness,
    "sawtooth": lambda staleness: lambda t, client: t % (staleness + 1),
    "by client": lambda staleness: lambda t, client: client % (staleness + 1),
    "both": lambda staleness: lambda t, client: (3 * t + 2 * client) % (staleness + 1),
}


def random_problem(seed, *, step_factor, sequential_rule=False, horizon=HORIZON):
    """A run at `step_factor` times the largest step, its exact moments and the keywords of its bounds."""
    chance = np.random.default_rng(seed)
    size, num_clients, local_steps = (int(n) for n in chance.integers(1, [3, 5, 4]))
    cohort_size = int(chance.integers(1, num_clients + 1))
    staleness = 0 if sequential_rule else int(chance.integers(0, 5))
    server_step = float(cohort_size if sequential_rule else chance.choice([1, cohort_size, 0.5]))
    hessians, gradients = random_clients(chance, num_clients=num_clients, size=size)
    variances = chance.uniform(0, 2, num_clients) * chance.choice([0, 1])
    spectra = np.array([np.linalg.eigvalsh(hessian) for hessian in hessians])
    smoothness, convexity = spectra.max(), spectra.min()
    shape = np.ones(local_steps) if chance.random() < 0.5 else chance.uniform(0.2, 1, local_steps)
    if sequential_rule:
        shape = np.ones(local_steps)
        limit = bounds.largest_paper_learning_rate(
            smoothness=smoothness, cohort_size=cohort_size, local_steps=local_steps
        )
    else:
        limit = bounds.largest_stale_learning_rate(
            smoothness=smoothness, staleness=staleness, local_steps=local_steps, server_step=server_step, shape=shape
        )
    rates = step_factor * limit * shape
    step = server_step * rates.sum()
    ratio = 1 - convexity * step / 2
    moves = [
        noisy_local_training(c, hessians[c], gradients[c], np.eye(size) * variances[c] / size, rates)
        for c in range(num_clients)
    ]
    outcomes = [[moves[c] for c in cohort] for cohort in combinations(range(num_clients), cohort_size)]
    start = chance.normal(size=size) * chance.choice([0, 1, 5])
    distances, sums = moments(
        outcomes,
        server_step=server_step,
        staleness=staleness,
        delay_of=DELAYS[chance.choice(list(DELAYS))](staleness),
        start=start,
        weight_ratio=ratio,
        horizon=horizon,
    )
    run = {
        "smoothness": smoothness,
        "strong_convexity": convexity,
        "optimum_heterogeneity": float(np.mean(np.sum(gradients**2, axis=1))),
        "num_clients": num_clients,
        "cohort_size": cohort_size,
        "local_steps": local_steps,
        "start_distance_squared": start @ start,
    }
    stale = {"learning_rate": rates, "staleness": staleness, "server_step": server_step}
    gaps = averaged_gap(sums, np.mean(hessians, axis=0), ratio)
    return run, stale, variances, distances, gaps


def ratio_to(bound, measured):
    """The largest measured/bound, where 0/0 counts as kept."""
    return float(np.max(measured / np.maximum(bound, 1e-300), initial=0, where=measured > 1e-13 * (1 + measured.max())))


def stale_ratios(seed, step_factor=1.0, *, averaged, last, variance_of):
    run, stale, variances, distances, gaps = random_problem(seed, step_factor=step_factor)
    at = bounds.StaleSetting(**run, **stale, gradient_variance=float(variance_of(variances)))
    horizon = {"last_index": np.arange(HORIZON), "check_step": False}
    return ratio_to(averaged(at, **horizon), gaps[:-1]), ratio_to(last(at, **horizon), distances[1:])


exact = settings(derandomize=True, deadline=None, max_examples=120)
KEPT = 1 + 1e-9


@pytest.mark.slow
@exact
@given(seeds, st.sampled_from([1.0, 1.0, 0.3]))
def test_r_star_bounds_the_exact_expectation(seed, step_factor):
    ratios = stale_ratios(
        seed, step_factor, averaged=bounds.r_star_averaged, last=bounds.r_star_last, variance_of=np.mean
    )
    assert max(ratios) <= KEPT


@pytest.mark.slow
@exact
@given(seeds, st.sampled_from([1.0, 1.0, 0.3]))
def test_r_bounds_the_exact_expectation(seed, step_factor):
    ratios = stale_ratios(seed, step_factor, averaged=bounds.r_averaged, last=bounds.r_last, variance_of=np.max)
    assert max(ratios) <= KEPT


@pytest.mark.slow
def test_far_beyond_the_step_r_does_fail():
    """The check has teeth: at 32 times the step some of the same problems break the bound, at the step itself none."""
    broken = {1: 0, 32: 0}
    for seed, factor in product(range(60), broken):
        run, stale, *_ = random_problem(seed, step_factor=factor, horizon=0)
        if run["strong_convexity"] * stale["server_step"] * stale["learning_rate"].sum() < 1.9:
            ratios = stale_ratios(seed, factor, averaged=bounds.r_averaged, last=bounds.r_last, variance_of=np.max)
            broken[factor] += max(ratios) > KEPT
    assert broken[1] == 0
    assert broken[32] >= 3


def test_smaller_bounds_are_caught():
    """A fifth of R*, and R* without its noise, are broken in some of the same problems."""
    worst, without_noise = 0.0, 0
    for seed in range(60):
        run, stale, variances, distances, gaps = random_problem(seed, step_factor=1.0)
        at, horizon = bounds.StaleSetting(**run, **stale, gradient_variance=variances.mean()), np.arange(HORIZON)
        worst = max(worst, ratio_to(bounds.r_star_averaged(at, last_index=horizon), gaps[:HORIZON]))
        without = replace(at, optimum_heterogeneity=0.0, gradient_variance=0.0)
        silent = bounds.r_star_last(without, last_index=horizon)
        without_noise += ratio_to(silent, distances[1:]) > KEPT
    assert worst > 0.2
    assert without_noise > 5


@exact
@given(seeds, st.sampled_from([1.0, 1.0, 0.2]))
def test_the_corrected_theorem_bounds_the_exact_expectation(seed, step_factor):
    run, stale, variances, _, gaps = random_problem(seed, step_factor=step_factor, sequential_rule=True)
    at = bounds.TheoremSetting(**run, gradient_variance=variances.max(), learning_rate=stale["learning_rate"][0])
    horizon = np.arange(HORIZON + 1)
    assert ratio_to(bounds.theorem_corrected(at, last_index=horizon), gaps) <= KEPT
    enough = bounds.enough_rounds(
        strong_convexity=at.strong_convexity, effective_step=at.effective_step, last_index=horizon
    )
    if enough.any():
        assert ratio_to(bounds.theorem_exponential(at, last_index=horizon[enough]), gaps[enough]) <= KEPT


def reshuffled_problem(seed, step_factor=1.0):
    """Clients with a few rank-one mini-batch losses, run in random order each epoch; singular clients included."""
    chance = np.random.default_rng(seed)
    size, num_clients, batches = int(chance.integers(1, 3)), int(chance.integers(1, 3)), int(chance.integers(1, 4))
    epochs, staleness = int(chance.integers(1, 3)), int(chance.integers(0, 4))
    rows = chance.normal(size=(num_clients, batches, size)) * chance.choice([0.3, 1], size=(num_clients, batches, 1))
    hessians = np.einsum("cbi,cbj->cbij", rows, rows)
    gradients = chance.normal(size=(num_clients, batches))[..., None] * rows
    objective = hessians.mean(axis=(0, 1))
    optimum = np.linalg.lstsq(objective, -gradients.mean(axis=(0, 1)), rcond=None)[0]
    gradients = gradients + hessians @ optimum
    smoothness = float(np.max(np.sum(rows**2, axis=-1)))
    steps = epochs * batches
    cohort_size = int(chance.integers(1, num_clients + 1)) if batches < 3 and epochs == 1 else 1
    limit = bounds.largest_stale_learning_rate(smoothness=smoothness, staleness=staleness, local_steps=steps)
    rate = step_factor * limit
    trained = [
        [
            batch_training(c, hessians[c], gradients[c], [b for order in orders for b in order], rate)
            for orders in product(permutations(range(batches)), repeat=epochs)
        ]
        for c in range(num_clients)
    ]
    outcomes = [
        list(members)
        for cohort in combinations(range(num_clients), cohort_size)
        for members in product(*(trained[c] for c in cohort))
    ]
    start = chance.normal(size=size) * chance.choice([0, 1, 5])
    of_client = gradients.mean(axis=1)
    run = {
        "smoothness": smoothness,
        "strong_convexity": float(np.linalg.eigvalsh(objective)[0]),
        "gradient_variance": float(np.mean(np.sum((gradients - of_client[:, None]) ** 2, axis=-1))),
        "optimum_heterogeneity": float(np.mean(np.sum(of_client**2, axis=-1))),
        "num_clients": num_clients,
        "cohort_size": cohort_size,
        "local_steps": steps,
        "learning_rate": rate,
        "staleness": staleness,
        "start_distance_squared": start @ start,
    }
    delay = DELAYS[chance.choice(list(DELAYS))](staleness)
    return run, outcomes, objective, start, delay


def batch_training(client, hessians, gradients, order, rate):
    size = gradients.shape[-1]
    linear, constant = np.eye(size), np.zeros(size)
    for batch in order:
        shrink = np.eye(size) - rate * hessians[batch]
        linear, constant = shrink @ linear, shrink @ constant - rate * gradients[batch]
    return Move(client, linear - np.eye(size), constant, np.zeros((size, size)))


def reshuffled_ratios(seed, step_factor=1.0):
    run, outcomes, objective, start, delay = reshuffled_problem(seed, step_factor)
    step = run["learning_rate"] * run["local_steps"]
    if run["strong_convexity"] < 1e-6 * run["smoothness"] or run["strong_convexity"] * step > 1.9:
        return None
    ratio = 1 - run["strong_convexity"] * step / 4
    distances, sums = moments(
        outcomes, server_step=1.0, staleness=run["staleness"], delay_of=delay, start=start, weight_ratio=ratio
    )
    at, horizon = bounds.StaleSetting(**run), {"last_index": np.arange(HORIZON), "check_step": False}
    return (
        ratio_to(bounds.r_conv_last(at, **horizon), distances[1:]),
        ratio_to(bounds.r_conv_averaged(at, **horizon), averaged_gap(sums, objective, ratio)[:-1]),
    )


@settings(derandomize=True, deadline=None, max_examples=80)
@given(seeds)
def test_r_conv_bounds_reshuffled_epochs_of_singular_clients(seed):
    ratios = reshuffled_ratios(seed)
    assert ratios is None or max(ratios) <= KEPT


def test_far_beyond_the_step_r_conv_does_fail():
    ratios = [found for seed in range(60) if (found := reshuffled_ratios(seed, 32.0)) is not None]
    assert sum(max(found) > KEPT for found in ratios) >= 3


def test_the_exact_moments_are_those_of_a_simulation():
    """The oracle itself, against 20,000 plain runs of one problem."""
    run, outcomes, _, start, delay = reshuffled_problem(5)
    distances, _ = moments(
        outcomes, server_step=1.0, staleness=run["staleness"], delay_of=delay, start=start, weight_ratio=0.5, horizon=12
    )
    chance, runs = np.random.default_rng(0), 20_000
    paths = [np.tile(start, (runs, 1))]
    for t in range(12):
        drawn, new = chance.integers(len(outcomes), size=runs), paths[-1].copy()
        for number, cohort in enumerate(outcomes):
            mine = drawn == number
            for move in cohort:
                stale = paths[t - min(t, delay(t, move.client))][mine]
                new[mine] += (stale @ move.linear.T + move.constant) / len(cohort)
        paths.append(new)
    sampled = np.array([np.mean(np.sum(path**2, axis=1)) for path in paths])
    errors = np.array([np.std(np.sum(path**2, axis=1)) for path in paths]) / runs**0.5
    assert np.all(np.abs(sampled - distances) <= 5 * errors + 1e-12)
    assert errors[-1] > 0


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=2500)
@given(seeds)
def test_many_problems_keep_r_star_r_and_r_conv(seed):
    r_star = stale_ratios(seed, averaged=bounds.r_star_averaged, last=bounds.r_star_last, variance_of=np.mean)
    r = stale_ratios(seed, averaged=bounds.r_averaged, last=bounds.r_last, variance_of=np.max)
    assert max(*r_star, *r, *(reshuffled_ratios(seed) or ())) <= KEPT
