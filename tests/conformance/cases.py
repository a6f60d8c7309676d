"""Which independent function stands beside which algorithm, and how the algorithm's settings are drawn.

`Case(function, draw)`: `function(run, settings)` is of `independent/`; `draw(rng, world)` answers with settings that
replace those of the algorithm as it is made by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from tests.conformance.independent import (
    client_tables,
    paper,
    robust,
    selection,
    semi_synchronous,
    staleness,
    synchronous,
    time_optimal,
    variance_reduction,
)

from asyncfed.core.record import replace
from asyncfed.rules.aggregators import Median, TrimmedMean
from asyncfed.strategies import (
    ConstantRate,
    DelayAware,
    Hinge,
    NoDiscount,
    Polynomial,
    UniformAll,
    UniformIdle,
    Weighted,
    algorithms,
)

NO_INDEPENDENT_IMPLEMENTATION: dict[str, str] = {}
"""Algorithms without one, and why."""


class Case(NamedTuple):
    """See the head of the file.

    Args:
        independent: `independent(run, settings)`.
        draw: settings of one schedule.
        world: what `draw_world` is told, such as that steps cost time.
        tickets: how many tickets there are, of so many clients; None: any number of them.
    """

    independent: Callable[[Any, dict[str, Any]], None]
    draw: Callable[[np.random.Generator, Any], dict[str, Any]] = lambda rng, world: {}
    world: Mapping[str, Any] = MappingProxyType({})


def make(name: str, world: Any, seed: int | None = None) -> Any:
    """The algorithm of this name in this world; with a seed, with drawn settings."""
    strategy = algorithms()[name].make(world.tickets, world.work, ConstantRate())
    if seed is None or name not in CASES:
        return strategy
    return with_settings(strategy, CASES[name].draw(np.random.default_rng([seed, 1]), world))


def with_settings(part: Any, settings: dict[str, Any]) -> Any:
    """The part with these settings; "rule.lr" is the setting `lr` of its `rule`."""
    own = {name: value for name, value in settings.items() if "." not in name}
    for inner in {name.split(".")[0] for name in settings if "." in name}:
        theirs = {n.split(".", 1)[1]: value for n, value in settings.items() if n.startswith(f"{inner}.")}
        own[inner] = with_settings(getattr(part, inner), theirs)
    return replace(part, **own)


def one_of(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def discount(rng: np.random.Generator) -> Any:
    power, slope = float(rng.uniform(0.2, 2.0)), float(rng.uniform(0.5, 10.0))
    return one_of(rng, NoDiscount(), Polynomial(), Polynomial(power=power), Hinge(slope=slope, grace=1), Hinge())


def sampler(rng: np.random.Generator) -> Any:
    return one_of(rng, UniformIdle(), UniformIdle(), UniformAll())


def _afl(aggregate: str) -> Callable[[np.random.Generator, Any], dict[str, Any]]:
    def draw(rng: np.random.Generator, world: Any) -> dict[str, Any]:
        over, weighting = one_of(rng, "epoch", "round", "nothing"), one_of(rng, "equal", "samples")
        bound = {"max_staleness": int(rng.integers(0, 3)), "when_stale": one_of(rng, "drop", "damp")}
        return {
            "schedule": DelayAware(delay_penalty=float(rng.uniform(0, 1)), over=over, initial_spread=0.2),
            "weighting": "equal" if aggregate == "mixing" else weighting,
            "sampler": sampler(rng),
            **({"mixing": float(rng.uniform(0.1, 1))} if aggregate == "mixing" else {}),
            **(bound if rng.random() < 0.5 else {}),
        }

    return draw


def _delay_adaptive(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    beyond = one_of(rng, "shrink", "theorem", "drop")
    return {
        "beyond": beyond,
        "server_lr": float(rng.uniform(0.1, 1)),
        **({"staleness_threshold": int(rng.integers(1, 4))} if rng.random() < 0.7 else {}),
        **({"smoothness": float(rng.uniform(0.5, 4))} if beyond == "theorem" else {}),
    }


def _fadas(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    return {
        "buffer_size": int(rng.integers(1, 5)),
        "sampler": sampler(rng),
        "rule.lr": float(rng.uniform(0.05, 0.6)),
        "rule.b1": float(rng.uniform(0, 0.9)),
        "rule.b2": float(rng.uniform(0.5, 0.99)),
        "rule.staleness_threshold": int(rng.integers(0, 3)),
    }


def _optimiser(rng: np.random.Generator, most: float, **b2: float) -> dict[str, Any]:
    return {
        "weighting": one_of(rng, "samples", "equal"),
        "rule.optimiser.lr": float(rng.uniform(0.02, most)),
        "rule.optimiser.b1": float(rng.uniform(0, 0.9)),
        "rule.optimiser.eps": float(rng.choice([1e-3, 0.1])),
        **{f"rule.optimiser.{name}": float(rng.uniform(least, 0.99)) for name, least in b2.items()},
    }


def _without_chance(rng: np.random.Generator) -> dict[str, Any]:
    """Mostly, clients are chosen by utility alone."""
    return {"sampler.exploration": 0.0, "sampler.least_exploration": 0.0} if rng.random() < 0.7 else {}


def _asgrad(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    return {"server_lr": float(rng.uniform(0.1, 1)), "wait_for": int(rng.integers(1, world.tickets + 1))}


def _ace(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    return {"server_lr": float(rng.uniform(0.05, 0.5))} if rng.random() < 0.5 else {}


def _over_selection(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    size = int(rng.integers(1, world.num_clients + 1))
    return {
        "cohort_size": size,
        "over_selection": float(rng.uniform(0, world.num_clients / size - 1)),
        "fewest_reports": int(rng.integers(1, size + 1)),
        "when_short": one_of(rng, "wait", "abandon"),
        "weighting": one_of(rng, "samples", "equal"),
        **({"deadline": float(rng.uniform(0.5, 3))} if rng.random() < 0.7 else {}),
    }


def _fedat(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    tiers = int(rng.integers(1, min(4, world.num_clients) + 1))
    return {
        "tiers": tiers,
        "cohort_size": int(rng.integers(1, world.num_clients // tiers + 1)),
        "weighting": one_of(rng, "samples", "equal"),
    }


def _basgd(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    buckets = int(rng.integers(1, world.num_clients + 1))
    most = (buckets - 1) // 2
    return {
        "buckets": buckets,
        "aggregator": one_of(rng, Median(liars=most), TrimmedMean(liars=int(rng.integers(most + 1)))),
        "server_lr": float(rng.uniform(0.1, 1)),
    }


def _kardam(rng: np.random.Generator, world: Any) -> dict[str, Any]:
    return {
        "liars": int(rng.integers(0, (world.num_clients - 1) // 3 + 1)),
        "damping": float(rng.uniform(0, 0.5)),
        "server_lr": float(rng.uniform(0.1, 1)),
        "escape": bool(rng.integers(2)),
    }


CASES: dict[str, Case] = {
    # the paper's
    "afl": Case(paper.afl, _afl("latest")),
    "afl_mixing": Case(paper.afl, _afl("mixing")),
    "afl_delta_mean": Case(paper.afl, _afl("delta_mean")),
    "afl_delta_sum": Case(paper.afl, _afl("delta_sum")),
    "published": Case(paper.published),
    "published_sync": Case(paper.published),
    # synchronous
    "fedavg": Case(synchronous.fedavg),
    "sync": Case(synchronous.fedavg),
    "fedprox": Case(synchronous.fedavg),
    "cyclic": Case(synchronous.cyclic),
    "cyclic_participation": Case(
        synchronous.in_turns, lambda rng, w: {"sampler.order": one_of(rng, "numbered", "shuffled")}
    ),
    "random_reshuffling": Case(synchronous.in_turns),
    "fednova": Case(
        synchronous.fednova,
        lambda rng, w: {"weighting": one_of(rng, "samples", "equal")},
        {"decay": 0.0, "repeated": True},  # with equal steps it is FedAvg
    ),
    "fedadam": Case(
        synchronous.server_optimiser,
        lambda rng, w: _optimiser(rng, 0.3, b2=0.5) | {"rule.optimiser.bias_correction": bool(rng.integers(2))},
    ),
    "fedyogi": Case(synchronous.server_optimiser, lambda rng, w: _optimiser(rng, 0.3, b2=0.5)),
    "fedadagrad": Case(synchronous.server_optimiser, lambda rng, w: _optimiser(rng, 0.6)),
    "fedavgm": Case(
        synchronous.server_optimiser,
        lambda rng, w: {
            "rule.optimiser.lr": float(rng.uniform(0.2, 1)),
            "rule.optimiser.b": float(rng.uniform(0, 0.8)),
        },
    ),
    # variance reduction
    "scaffold": Case(variance_reduction.scaffold),
    "scaffold_async": Case(
        variance_reduction.scaffold_async,
        lambda rng, w: {"mixing": float(rng.uniform(0.1, 1)), "discount": discount(rng)},
    ),
    "feddyn": Case(variance_reduction.feddyn),
    # staleness
    "async_sgd": Case(
        staleness.async_sgd, lambda rng, w: {"server_lr": float(rng.uniform(0.1, 1)), "sampler": sampler(rng)}
    ),
    "fedasync": Case(
        staleness.fedasync,
        lambda rng, w: {"mixing": float(rng.uniform(0.1, 1)), "discount": discount(rng), "sampler": sampler(rng)},
    ),
    "staleness_aware": Case(
        staleness.staleness_aware, lambda rng, w: {"buffer_size": int(rng.integers(1, 4)), "sampler": sampler(rng)}
    ),
    "fedbuff": Case(
        staleness.fedbuff,
        lambda rng, w: {
            "buffer_size": int(rng.integers(1, 6)),
            "server_lr": float(rng.uniform(0.1, 1)),
            "discount": discount(rng),
            "sampler": sampler(rng),
        },
    ),
    "delay_adaptive": Case(staleness.delay_adaptive, _delay_adaptive),
    "delay_adaptive_mishchenko": Case(staleness.delay_adaptive, _delay_adaptive),
    "fadas": Case(staleness.fadas, _fadas),
    "fadas_paper": Case(staleness.fadas, _fadas),
    "dc_asgd": Case(
        staleness.dc_asgd,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 0.5)),
            "rule.compensation": float(rng.uniform(0, 0.1)),
            "rule.adaptive": bool(rng.integers(2)),
            "rule.adaptive_compensation": float(rng.uniform(0, 0.5)),
        },
        {"proximal": 0.0},
    ),
    "generalized_async_sgd": Case(
        staleness.generalized_async_sgd,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 0.5)),
            "sampler": one_of(
                rng, UniformAll(), Weighted(weights=tuple(rng.uniform(0.2, 1, w.num_clients).tolist()), busy="queue")
            ),
        },
    ),
    "asyncfeded": Case(
        staleness.asyncfeded,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 1)),
            "eps": float(rng.uniform(0.5, 2)),
            "gamma_target": float(rng.uniform(0, 3)),
            "step_gain": float(rng.uniform(0.2, 0.6)),
            "max_steps": one_of(rng, None, 3),
            "sampler": sampler(rng),
        },
    ),
    "fedfa": Case(staleness.fedfa, lambda rng, w: {"queue_size": int(rng.integers(1, 6)), "sampler": sampler(rng)}),
    "port": Case(
        staleness.port,
        lambda rng, w: {
            "buffer_size": int(rng.integers(1, 4)),
            "staleness_bound": int(rng.integers(1, 6)),
            "similarity_weight": float(rng.uniform(0, 2)),
            "staleness_weight": float(rng.uniform(0.1, 3)),
            "when_late": one_of(rng, "wait", "restart", "ignore"),
        },
    ),
    "fedasmu": Case(
        staleness.fedasmu,
        lambda rng, w: {
            "mixing": float(rng.uniform(0.1, 2)),
            "scale": float(rng.uniform(0, 2)),
            "power": float(rng.uniform(0, 2)),
            "offset": float(rng.choice([0, 0.2])),
            "sampler": sampler(rng),
        },
    ),
    "aso_fed": Case(
        staleness.aso_fed,
        lambda rng, w: {
            "dynamic_step": bool(rng.integers(2)),
            "rule.balance": float(rng.uniform(0, 1)),
            **({"delay_unit": float(rng.uniform(0.5, 2))} if rng.random() < 0.4 else {}),
        },
    ),
    "asgrad_pure": Case(staleness.asgrad, _asgrad),
    "asgrad_random": Case(staleness.asgrad, _asgrad),
    "asgrad_shuffled": Case(staleness.asgrad, _asgrad),
    # client tables
    "fedvarp": Case(client_tables.fedvarp),
    "mifa": Case(client_tables.mifa),
    "ace": Case(client_tables.ace, _ace),
    "aced": Case(client_tables.ace, lambda rng, w: _ace(rng, w) | {"rule.max_age": int(rng.integers(0, 8))}),
    "ca2fl": Case(
        client_tables.ca2fl,
        lambda rng, w: {
            "buffer_size": int(rng.integers(1, 5)),
            "server_lr": float(rng.uniform(0.1, 1)),
            "discount": discount(rng),
        },
    ),
    # time-optimal
    "ringmaster": Case(
        time_optimal.ringmaster,
        lambda rng, w: {"staleness_threshold": int(rng.integers(1, 5)), "stops": bool(rng.integers(2))},
    ),
    "ringmaster_without_stops": Case(
        time_optimal.ringmaster, lambda rng, w: {"staleness_threshold": int(rng.integers(1, 5))}
    ),
    "rennala": Case(
        time_optimal.rennala,
        lambda rng, w: {"changes_per_step": int(rng.integers(1, 8)), "server_lr": float(rng.uniform(0.1, 1))},
    ),
    "malenia": Case(
        time_optimal.malenia,
        lambda rng, w: {
            "changes_per_step": int(rng.integers(1, 15)),
            "server_lr": float(rng.uniform(0.1, 1)),
            "most_changes": one_of(rng, None, 1, 2, 5),
        },
    ),
    "ringleader": Case(
        time_optimal.ringleader,
        lambda rng, w: {
            "server_lr": one_of(rng, None, float(rng.uniform(0.1, 1))),
            "most_changes": one_of(rng, None, 1, 2, 5),
        },
    ),
    "mindflayer": Case(
        time_optimal.mindflayer,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 1)),
            "trials": one_of(rng, 1, 2, tuple(int(b) for b in rng.integers(1, 4, w.num_clients))),
            "cut_off": one_of(rng, None, None, float("inf"), 2.0, tuple(rng.uniform(0.5, 4, w.num_clients).tolist())),
            "finish_probability": one_of(rng, None, None, 0.7),
            "slack": float(rng.uniform(0.8, 2)),
            "warm_up": int(rng.integers(1, 3)),
        },
    ),
    # semi-synchronous
    "fedcompass": Case(
        semi_synchronous.fedcompass,
        lambda rng, w: {
            "min_steps": int(rng.integers(1, 4)),
            "max_steps": int(rng.integers(4, 12)),
            "latest_factor": float(rng.uniform(1.0, 2.0)),
            "speed_momentum": float(rng.uniform(0.2, 1.0)),
            "server_lr": float(rng.uniform(0.1, 1.0)),
            "weighting": one_of(rng, "samples", "equal"),
            "discount": discount(rng),
        },
        world={"per_step": True},
    ),
    "safa": Case(
        semi_synchronous.safa,
        lambda rng, w: {
            "cohort_size": int(rng.integers(1, w.num_clients + 1)),
            "lag_tolerance": int(rng.integers(0, 4)),
            **({"deadline": float(rng.uniform(0.5, 3))} if rng.random() < 0.5 else {}),
        },
    ),
    "fedat": Case(semi_synchronous.fedat, _fedat),
    "over_selection": Case(semi_synchronous.over_selection, _over_selection),
    "periodic": Case(
        semi_synchronous.periodic,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 1)),
            "discount": discount(rng),
            "restart": one_of(rng, "at_merge", "at_once"),
            **({"period": float(rng.uniform(0.3, 4))} if rng.random() < 0.6 else {}),
        },
    ),
    # selection and fairness
    "qfair": Case(
        selection.qfair,
        lambda rng, w: {
            "rule.q": float(rng.uniform(0, 3)),
            "rule.smoothness": one_of(rng, None, float(rng.uniform(1, 5))),
        },
    ),
    "oort": Case(
        selection.oort,
        lambda rng, w: (
            {"weighting": one_of(rng, "samples", "equal")}
            | _without_chance(rng)
            | ({"sampler.cut_off": one_of(rng, 1.0, 0.8), "sampler.preferred": 1.0} if rng.random() < 0.7 else {})
        ),
    ),
    "pisces": Case(
        selection.pisces,
        lambda rng, w: (
            {
                "staleness_bound": int(rng.integers(1, 5)),
                "server_lr": float(rng.uniform(0.1, 1)),
                "discount": discount(rng),
                "sampler.staleness_power": float(rng.uniform(0, 2)),
            }
            | _without_chance(rng)
        ),
    ),
    "power_of_choice": Case(
        selection.power_of_choice, lambda rng, w: {"sampler.candidates": one_of(rng, w.num_clients, w.tickets)}
    ),
    "minimum_participation": Case(
        selection.minimum_participation,
        lambda rng, w: {"buffer_size": int(rng.integers(1, 4)), "sampler.gap": one_of(rng, 0.0, 0.5, 2.0)},
    ),
    # robust
    "aflguard": Case(
        robust.aflguard,
        lambda rng, w: {
            "distance_factor": float(rng.uniform(0.5, 4)),
            "refresh": int(rng.integers(1, 4)),
            "trusted_client": int(rng.integers(w.num_clients)),
        },
    ),
    "basgd": Case(robust.basgd, _basgd),
    "kardam": Case(robust.kardam, _kardam),
    "kardam_code": Case(robust.kardam, _kardam),
    "robust_momentum": Case(
        robust.robust_momentum,
        lambda rng, w: {
            "server_lr": float(rng.uniform(0.1, 1)),
            "rule.momentum": float(rng.uniform(0, 0.95)),
            "rule.by_count": bool(rng.integers(2)),
        },
    ),
    "zeno": Case(
        robust.zeno,
        lambda rng, w: {
            "gamma": float(rng.uniform(0.5, 2)),
            "rho": float(rng.uniform(0, 0.45)),
            "eps": one_of(rng, 0.0, float(rng.uniform(0, 0.05))),
            "refresh": int(rng.integers(1, 4)),
            "server_lr": float(rng.uniform(0.1, 1)),
            "trusted_client": int(rng.integers(w.num_clients)),
        },
    ),
}
