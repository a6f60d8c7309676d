"""Which strategies and rules do with weighted sums: against a table written by hand, with the reason for each."""

from __future__ import annotations

from typing import Any

import pytest

import asyncfed.rules as rules
from asyncfed.core.record import Config
from asyncfed.core.types import Work
from asyncfed.registry import kinds
from asyncfed.rules.protocol import Rule, is_sum_only
from asyncfed.strategies import AFL, BoundedStaleness, ConstantRate, FedAvg, FedBuff, ParticipationWeighted
from asyncfed.strategies.algorithm import algorithms
from asyncfed.strategies.reputation import Reputation
from asyncfed.strategies.single_updates import SumOnly, why_single_updates

COHORT = "the mean of a cohort"
BUFFER = "the sum of a buffer"
SUMS = {
    "published_sync": COHORT,
    "fedavg": COHORT,
    "sync": COHORT,
    "fedprox": COHORT,
    "cyclic_participation": COHORT,
    "random_reshuffling": COHORT,
    "fedavgm": "an optimiser along the mean of a cohort",
    "fedadagrad": "an optimiser along the mean of a cohort",
    "fedadam": "an optimiser along the mean of a cohort",
    "fedyogi": "an optimiser along the mean of a cohort",
    "fednova": "scaled by counts of steps, then a mean",
    "over_selection": "the mean of the first of a cohort",
    "fedbuff": BUFFER,
    "minimum_participation": BUFFER + "; who is drawn follows from counts",
    "fadas": "AMSGrad along the sum of a buffer; the largest staleness is a number",
    "fadas_paper": "AMSGrad along the sum of a buffer; the largest staleness is a number",
    "rennala": "the mean of a batch",
    "malenia": "a mean of everybody's means, weighed by counts",
    "mindflayer": "the sum of all that finished, divided by a number",
    "fedat": "the mean of a tier's cohort, two clients of each by name",
}
ON_ARRIVAL = "as they arrive"
SINGLE = {
    **dict.fromkeys(("afl", "afl_delta_mean", "afl_delta_sum", "afl_mixing", "published", "cyclic"), ON_ARRIVAL),
    **dict.fromkeys(("async_sgd", "staleness_aware", "fedasync", "fedasmu", "generalized_async_sgd"), ON_ARRIVAL),
    **dict.fromkeys(("delay_adaptive", "delay_adaptive_mishchenko"), ON_ARRIVAL),
    **dict.fromkeys(("asgrad_pure", "asgrad_random", "asgrad_shuffled"), ON_ARRIVAL),
    **dict.fromkeys(("ringmaster", "ringmaster_without_stops"), ON_ARRIVAL),
    "periodic": "when its interval ends",
    "pisces": "when its interval ends",
    "fedcompass": "a single member",
    "scaffold": "Scaffold",  # the server computes every client's control variate
    "scaffold_async": "Scaffold",
    "feddyn": "FedDyn",  # the server keeps every client's dual vector
    "aso_fed": "AsoFed",  # the server keeps every client's last model
    "dc_asgd": "DcAsgd",  # each change is corrected by its own square
    "fedfa": "LastModels",
    "mifa": "TableMean",
    "ace": "TableMean",
    "aced": "TableMean",
    "fedvarp": "CA2FL",
    "ca2fl": "CA2FL",
    "ringleader": "BatchTable",
    "safa": "ModelCache",
    "asyncfeded": "MovedSince",  # the length of each change decides what it counts
    "port": "MovedSince",
    "qfair": "QFair",
    "kardam": "LipschitzCoefficients",
    "kardam_code": "LipschitzCoefficients",
    "zeno": "TrustedDirection",
    "aflguard": "TrustedDistance",
    "basgd": "BucketAggregate",
    "robust_momentum": "LatestMomenta",
    "oort": "work.start_rms",
    "power_of_choice": "work.start_loss",
}
RULES = {"mean", "optimised", "fadas", "fednova", "noised", "tier_models", "fixed_point_sum", "tree_noised"}


def test_every_algorithm_is_in_one_of_the_tables() -> None:
    assert SUMS.keys() | SINGLE.keys() == algorithms().keys()
    assert not SUMS.keys() & SINGLE.keys()


@pytest.mark.parametrize("name", sorted(algorithms()))
def test_algorithms_are_as_the_table_has_them(name: str) -> None:
    strategy: Any = algorithms()[name].make(10, Work(), ConstantRate())
    why = why_single_updates(strategy)
    assert strategy.sum_only is (why is None) is (name in SUMS)
    if why is not None:
        assert SINGLE[name] in why


def test_settings_decide_too() -> None:
    assert not FedBuff(buffer_size=1).sum_only
    assert not FedAvg(cohort_size=1).sum_only
    assert not FedBuff(rule=rules.Clipped()).sum_only
    assert not FedBuff(work=Work(loss=True)).sum_only
    assert not FedBuff(rule=rules.Optimised(rule=rules.NormBounded())).sum_only
    assert FedBuff(rule=rules.Optimised(rule=rules.Noised(clip=1.0, multiplier=1.0, divisor=10))).sum_only


def test_strategies_around_others_ask_them() -> None:
    assert BoundedStaleness(strategy=FedBuff(), max_staleness=3).sum_only
    assert ParticipationWeighted(strategy=FedBuff()).sum_only
    assert not BoundedStaleness(strategy=AFL(), max_staleness=3).sum_only
    assert not Reputation(strategy=FedBuff()).sum_only


def test_a_strategy_that_does_not_say_needs_single_updates() -> None:
    class Silent:
        work = Work()

    class Curt(Silent, SumOnly):
        """It says nothing about its merges."""

    assert "does not say whether sums are enough" in str(why_single_updates(Silent()))
    assert "does not say how many" in str(why_single_updates(Curt()))


def test_rules_are_as_the_table_has_them() -> None:
    shipped = {kind: rule for kind, rule in kinds("rule").items() if rule.__module__.startswith("asyncfed.")}
    noise = {"clip": 1.0, "multiplier": 1.0, "divisor": 2}
    needed: dict[str, dict[str, Any]] = {"noised": noise, "tree_noised": {**noise, "releases": 4}}
    made = {kind: rule(**needed.get(kind, {})) for kind, rule in shipped.items()}
    assert {kind for kind, rule in made.items() if is_sum_only(rule)} == RULES


def test_a_rule_that_does_not_say_needs_single_updates() -> None:
    class Own(Rule, Config, tag_field="kind", tag="own_for_sums"):
        """It has `step` and nothing else."""

        def step(self, memory: Any, params: Any, arrivals: Any, merge: Any, key: Any) -> Any:
            return params, memory, {}

    assert not is_sum_only(Own())  # type: ignore[arg-type]
    assert not is_sum_only(rules.Optimised(rule=Own()))  # type: ignore[arg-type]
    assert is_sum_only(None)
