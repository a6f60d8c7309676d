"""P and M: no order of clients and no delays lead a run out of its ball. Plain simulation, no probability."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.errors import ConfigError
from asyncfed.theory import bounds

seeds = st.integers(0, 2**32 - 1)
UPDATES = 60
ORDERS = ("random", "slow client", "adversary")


class Clients:
    """Gradients of all clients, the optimum of their mean, and constants that hold for each."""

    def __init__(self, gradients, optimum, smoothness, convexity):
        self.gradients, self.optimum, self.smoothness, self.convexity = gradients, optimum, smoothness, convexity

    def trained(self, client, model, rates):
        for rate in rates:
            model = model - rate * self.gradients[client](model)
        return model

    def gap(self, rates):
        """b, measured: how far local training leaves the optimum."""
        return max(
            np.linalg.norm(self.trained(c, self.optimum, rates) - self.optimum) for c in range(len(self.gradients))
        )


def quadratic_clients(chance):
    size, number = int(chance.integers(1, 4)), int(chance.integers(1, 5))
    bases = [np.linalg.qr(chance.normal(size=(size, size)))[0] for _ in range(number)]
    spectra = 10 ** chance.uniform(-0.7, 0.5, (number, size))
    hessians = np.array([base * spectrum @ base.T for base, spectrum in zip(bases, spectra, strict=True)])
    centres = chance.normal(size=(number, size)) * chance.choice([0, 1])
    slopes = np.einsum("cij,cj->ci", hessians, centres)
    optimum = np.linalg.solve(hessians.mean(axis=0), slopes.mean(axis=0))
    gradients = [lambda x, h=h, b=b: h @ x - b for h, b in zip(hessians, slopes, strict=True)]
    return Clients(gradients, optimum, spectra.max(), spectra.min())


def logistic_clients(chance):
    size, number, rows, penalty = 2, int(chance.integers(1, 4)), 6, float(chance.choice([0.3, 1.0]))
    signed = chance.normal(size=(number, rows, size))

    def gradient(client):
        z = signed[client]
        return lambda x: -z.T @ (1 / (1 + np.exp(z @ x))) / rows + penalty * x

    gradients, optimum = [gradient(c) for c in range(number)], np.zeros(size)
    for _ in range(50):
        slope = np.mean([g(optimum) for g in gradients], axis=0)
        odds = 1 / (1 + np.exp(signed @ optimum))
        hessian = np.einsum("cr,cri,crj->ij", odds * (1 - odds), signed, signed) / (number * rows)
        optimum = optimum - np.linalg.solve(hessian + penalty * np.eye(size), slope)
    assert np.linalg.norm(slope) < 1e-12
    steepest = max(np.linalg.eigvalsh(z.T @ z / rows)[-1] for z in signed)
    return Clients(gradients, optimum, steepest / 4 + penalty, penalty)


def path(clients, chance, *, order, staleness, start, merge, rates_of):
    """Distances to the optimum; merge(model, trained, base) is the server's rule, rates_of(version) the local rates."""
    number, models = len(clients.gradients), [start]
    for t in range(UPDATES):

        def after(client, late, t=t):
            base = models[t - late]
            return merge(models[t], clients.trained(client, base, rates_of(t - late)), base)

        if order == "adversary":
            choices = [after(c, late) for c in range(number) for late in range(min(t, staleness) + 1)]
            models.append(max(choices, key=lambda model: np.linalg.norm(model - clients.optimum)))
        elif order == "slow client":
            slow = t % 3 == 0
            models.append(after(0 if slow else int(chance.integers(number)), min(t, staleness) if slow else 0))
        else:
            models.append(after(int(chance.integers(number)), int(chance.integers(min(t, staleness) + 1))))
    return np.array([np.linalg.norm(model - clients.optimum) for model in models])


def setting(seed, make, steepness=(0.05, 0.98)):
    """A random problem with rates that P allows, and its start."""
    chance = np.random.default_rng(seed)
    clients, staleness, steps = make(chance), int(chance.integers(0, 5)), int(chance.integers(1, 4))
    server_step = float(chance.choice([1, 0.5, 0.2]))
    curve = {"smoothness": clients.smoothness, "strong_convexity": clients.convexity}
    shape = np.ones(steps) if chance.random() < 0.5 else chance.uniform(0.2, 1, steps)
    limit = bounds.largest_delta_learning_rate(
        **curve, local_steps=steps, staleness=staleness, server_step=server_step, shape=shape
    )
    start = clients.optimum + chance.normal(size=len(clients.optimum)) * chance.choice([0, 1, 10])
    rates = chance.uniform(*steepness) * limit * shape
    return chance, clients, staleness, server_step, rates, start


def tolerance(clients, start):
    return 1e-10 * (1 + np.linalg.norm(start - clients.optimum) + np.linalg.norm(clients.optimum))


def of_rates(clients, rates):
    return bounds.local_map(
        smoothness=clients.smoothness,
        strong_convexity=clients.convexity,
        learning_rate=rates,
        local_steps=len(rates),
    )


def delta_margin(seed, make, order, shrink_bound=1.0):
    chance, clients, staleness, server_step, rates, start = setting(seed, make)
    distances = path(
        clients,
        chance,
        order=order,
        staleness=staleness,
        start=start,
        merge=lambda model, trained, base: model + server_step * (trained - base),
        rates_of=lambda version: rates,
    )
    of_client = of_rates(clients, rates)
    run = {
        "gain": of_client.gain,
        "stretch": of_client.stretch,
        "fixed_point_gap": clients.gap(rates),
        "staleness": staleness,
        "start_distance": np.linalg.norm(start - clients.optimum),
        "server_step": server_step,
    }
    bound = bounds.delta_path_bound(**run, num_updates=np.arange(UPDATES + 1))
    iterated = bounds.delta_path_recursion(**run, num_updates=UPDATES)
    assert np.all(iterated <= bound * (1 + 1e-9))
    return np.min(shrink_bound * iterated - distances) + tolerance(clients, start)


def mixing_margin(seed, make, order, wrong_rate=False):
    chance, clients, staleness, mixing, rates, start = setting(seed, make)
    rates = rates * min(1 / clients.smoothness / rates.max(), 30)
    distances = path(
        clients,
        chance,
        order=order,
        staleness=staleness,
        start=start,
        merge=lambda model, trained, base: (1 - mixing) * model + mixing * trained,
        rates_of=lambda version: rates,
    )
    of_client = of_rates(clients, rates)
    run = {
        "gain": of_client.gain,
        "fixed_point_gap": clients.gap(rates),
        "staleness": 0 if wrong_rate else staleness,
        "start_distance": np.linalg.norm(start - clients.optimum),
        "mixing": mixing,
    }
    bound = bounds.mixing_path_bound(**run, num_updates=np.arange(UPDATES + 1))
    iterated = bounds.mixing_path_recursion(**run, num_updates=UPDATES)
    assert np.all(iterated <= bound * (1 + 1e-9))
    return np.min(iterated - distances) + tolerance(clients, start)


few = settings(derandomize=True, deadline=None, max_examples=30)
makers = st.sampled_from([quadratic_clients, quadratic_clients, logistic_clients])


@few
@given(seeds, makers, st.sampled_from(ORDERS))
def test_adding_stale_deltas_stays_within_p(seed, make, order):
    assert delta_margin(seed, make, order) >= 0


@few
@given(seeds, makers, st.sampled_from(ORDERS))
def test_mixing_stale_models_stays_within_m(seed, make, order):
    assert mixing_margin(seed, make, order) >= 0


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=1500)
@given(seeds, makers, st.sampled_from(ORDERS))
def test_many_paths_stay_within_p_and_m(seed, make, order):
    assert delta_margin(seed, make, order) >= 0
    assert mixing_margin(seed, make, order) >= 0


def test_smaller_balls_are_left():
    """P less five in a hundred, and M that forgets the staleness, are broken by the adversary in some problem."""
    assert any(delta_margin(seed, quadratic_clients, "adversary", shrink_bound=0.95) < 0 for seed in range(25))
    assert any(mixing_margin(seed, quadratic_clients, "adversary", wrong_rate=True) < 0 for seed in range(25))


@few
@given(seeds, st.sampled_from(ORDERS), st.sampled_from(["deltas", "models"]))
def test_rates_that_decay_with_the_version_stay_within_the_recursions(seed, order, rule):
    """An update is made at the rate of the version it was dispatched with; the recursions take what each merge used."""
    chance, clients, staleness, step, rates, start = setting(seed, quadratic_clients, steepness=(0.5, 3))
    rates = np.minimum(rates, 2 / (clients.smoothness + clients.convexity))
    number, models, used = len(clients.gradients), [start], []
    for t in range(UPDATES):
        options = [(c, late) for c in range(number) for late in range(min(t, staleness) + 1)]
        if order != "adversary":
            options = [options[chance.integers(len(options))] if order == "random" else options[-1]]
        after = {}
        for client, late in options:
            base, version_rates = models[t - late], rates / np.sqrt(1 + t - late)
            trained = clients.trained(client, base, version_rates)
            moved = models[t] + step * (trained - (base if rule == "deltas" else models[t]))
            after[client, late] = moved, version_rates, late
        model, version_rates, late = max(after.values(), key=lambda found: np.linalg.norm(found[0] - clients.optimum))
        models.append(model)
        used.append((*of_rates(clients, version_rates), clients.gap(version_rates), late))
    _, gain, stretch, gap, late = np.array(used).T
    run = {
        "gain": gain,
        "fixed_point_gap": gap,
        "staleness": late,
        "start_distance": np.linalg.norm(start - clients.optimum),
        "num_updates": UPDATES,
    }
    if rule == "deltas":
        bound = bounds.delta_path_recursion(**run, stretch=stretch, server_step=step)
    else:
        bound = bounds.mixing_path_recursion(**run, mixing=step)
    distances = np.linalg.norm(np.array(models) - clients.optimum, axis=1)
    assert np.all(distances <= bound + tolerance(clients, start))


@few
@given(seeds, st.integers(2, 4))
def test_means_of_several_stay_within_the_same_balls(seed, cohort_size):
    chance, clients, staleness, step, rates, start = setting(seed, quadratic_clients)
    number, of_client = len(clients.gradients), of_rates(clients, rates)
    deltas, mixed = [start], [start]
    lates = np.array([chance.integers(0, min(t, staleness) + 1, cohort_size) for t in range(UPDATES)])
    for t in range(UPDATES):
        drawn = [(int(chance.integers(number)), int(late)) for late in lates[t]]
        moves = [clients.trained(c, deltas[t - late], rates) - deltas[t - late] for c, late in drawn]
        deltas.append(deltas[t] + step * np.mean(moves, axis=0))
        received = [clients.trained(c, mixed[t - late], rates) for c, late in drawn]
        mixed.append((1 - step) * mixed[t] + step * np.mean(received, axis=0))
    run = {
        "gain": of_client.gain,
        "fixed_point_gap": clients.gap(rates),
        "start_distance": np.linalg.norm(start - clients.optimum),
    }
    p_run, m_run = {**run, "stretch": of_client.stretch, "server_step": step}, {**run, "mixing": step}
    every = np.arange(UPDATES + 1)
    for models, closed, iterated in (
        (
            deltas,
            bounds.delta_path_bound(**p_run, staleness=staleness, num_updates=every),
            bounds.delta_path_recursion(**p_run, staleness=lates, num_updates=UPDATES),
        ),
        (
            mixed,
            bounds.mixing_path_bound(**m_run, staleness=staleness, num_updates=every),
            bounds.mixing_path_recursion(**m_run, staleness=lates, num_updates=UPDATES),
        ),
    ):
        distances = np.linalg.norm(np.array(models) - clients.optimum, axis=1)
        assert np.all(distances <= iterated + tolerance(clients, start))
        assert np.all(iterated <= closed * (1 + 1e-9))


@few
@given(st.floats(0.05, 1), st.floats(1, 50), st.integers(1, 40), st.integers(0, 12), st.sampled_from([1, 0.5, 0.1]))
def test_the_largest_rate_of_p_is_the_edge(convexity, condition, steps, staleness, server_step):
    curve = {"smoothness": convexity * condition, "strong_convexity": convexity}
    at = {"staleness": staleness, "server_step": server_step}
    limit = bounds.largest_delta_learning_rate(**curve, local_steps=steps, **at)
    top = bounds.largest_path_learning_rate(**curve)
    assert 0 < limit <= top

    def ratio(rate):
        of_client = bounds.local_map(**curve, learning_rate=rate, local_steps=steps)
        return bounds.delta_condition(gain=of_client.gain, stretch=of_client.stretch, **at)

    assert all(ratio(limit * share) < 1 for share in (0.999, 0.7, 0.2, 0.01))
    if limit < top * (1 - 1e-9):
        assert ratio(limit * 1.0001) >= 1


@few
@given(seeds)
def test_the_sequence_lemma(seed):
    chance = np.random.default_rng(seed)
    window, own = int(chance.integers(0, 6)), chance.uniform(0, 0.98)
    delayed, offset = chance.uniform(0, 0.99 - own), chance.choice([0, 1.0])
    values = [chance.uniform(0, 5)]
    for t in range(80):
        values.append(own * values[-1] + delayed * max(values[max(0, t - window) :]) + offset)
    bound = bounds.delayed_sequence_bound(
        own_weight=own, delayed_weight=delayed, offset=offset, window=window, start=values[0], index=np.arange(81)
    )
    assert np.all(np.array(values) <= bound * (1 + 1e-12))


@few
@given(seeds)
def test_plain_inputs_give_the_bounds_of_their_maps(seed):
    _, clients, staleness, step, rates, start = setting(seed, quadratic_clients)
    of_client, gap = of_rates(clients, rates), clients.gap(rates)
    curve = {"smoothness": clients.smoothness, "strong_convexity": clients.convexity, "staleness": staleness}
    plain = {**curve, "learning_rate": rates, "local_steps": len(rates), "fixed_point_gap": gap}
    at = {"start_distance": np.linalg.norm(start - clients.optimum), "num_updates": np.arange(UPDATES)}
    mapped = {"gain": of_client.gain, "fixed_point_gap": gap, "staleness": staleness}
    run = bounds.PathSetting(**plain, server_step=step)
    p = bounds.p_bound(run, **at)
    assert p.tolist() == bounds.delta_path_bound(**mapped, stretch=of_client.stretch, server_step=step, **at).tolist()
    assert bounds.m_bound(run, **at).tolist() == (bounds.mixing_path_bound(**mapped, mixing=step, **at).tolist())
    limit = bounds.p_constants(run).largest_learning_rate
    assert rates.max() < limit
    near = replace(run, learning_rate=0.9999 * limit * rates / rates.max())
    assert bounds.p_constants(near).rate < 1


def test_plain_inputs_that_say_too_little_or_too_much():
    run = {"smoothness": 4, "strong_convexity": 0.5, "learning_rate": 0.01, "local_steps": 5, "staleness": 2}
    with pytest.raises(ConfigError, match="largest_optimum_gradient and fixed_point_gap neither is given"):
        bounds.PathSetting(**run)
    with pytest.raises(ConfigError, match="largest_optimum_gradient and fixed_point_gap both are given"):
        bounds.PathSetting(**run, largest_optimum_gradient=1, fixed_point_gap=1)
    with pytest.raises(ConfigError, match="fixed_point_gap is -1, but must be at least 0"):
        bounds.PathSetting(**run, fixed_point_gap=-1)
    with pytest.raises(
        ConfigError, match=r"server_step is 2, but must be .*at most 1. P and M are proved for no other"
    ):
        bounds.PathSetting(**run, fixed_point_gap=0, server_step=2)
    with pytest.raises(ConfigError, match=r"P needs .* it is 3.168.*Take a learning_rate below 0.00313481\."):
        bounds.p_bound(bounds.PathSetting(**run, fixed_point_gap=0), start_distance=1, num_updates=3)


def test_refusals_say_what_to_do():
    with pytest.raises(ConfigError, match=r"P needs η K² τ / s below 1 but it is 2 .*smaller learning_rate"):
        bounds.delta_path(gain=0.5, stretch=1, fixed_point_gap=0, staleness=1)
    with pytest.raises(ConfigError, match=r"learning_rate is 1.0, but must be at most 0.5.*may lengthen distances"):
        bounds.local_map(smoothness=3, strong_convexity=1, learning_rate=1.0, local_steps=2)
    with pytest.raises(ConfigError, match=r"server_step is 2, but must be .*at most 1"):
        bounds.delta_path(gain=0.5, stretch=1, fixed_point_gap=0, staleness=0, server_step=2)
    with pytest.raises(ConfigError, match=r"gain has shape \(3,\), but num_updates is 2"):
        bounds.mixing_path_recursion(gain=[0.1] * 3, fixed_point_gap=0, staleness=0, start_distance=1, num_updates=2)
    with pytest.raises(ConfigError, match="sum below 1 contracts"):
        bounds.delayed_sequence_rate(own_weight=0.5, delayed_weight=0.5, window=1)
