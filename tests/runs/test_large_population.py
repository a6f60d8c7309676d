"""What keeps something for every client is refused where there are very many; the rest takes hardly any memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.presets import strategy_named
from asyncfed.rules import Optimised
from asyncfed.runs.large_population import check_large_population
from asyncfed.strategies import AFL, FedAvg, FedBuff
from asyncfed.strategies.samplers import Fair, UniformAll

MANY = 100_000_000
ROOT = Path(__file__).parent.parent.parent


def described(strategy, **changes):
    return af.Experiment(num_clients=MANY, data=af.data.Population(), strategy=strategy, **changes)


@pytest.mark.parametrize(
    "strategy",
    [AFL(), FedBuff(sampler=UniformAll()), FedAvg(rule=Optimised())],
    ids=["afl", "uniform_all", "optimised"],
)
def test_what_keeps_nothing_for_everybody_may_run(strategy):
    check_large_population(described(strategy), MANY)


@pytest.mark.parametrize(
    ("strategy", "changes", "words"),
    [
        (FedBuff(sampler=Fair()), {}, "strategy.sampler is fair, which does not promise `any_population`"),
        (strategy_named("scaffold", 5, Work()), {}, r"strategy(.rule)? is scaffold"),
        (AFL(aggregate="mixing", weighting="inverse_participation"), {}, "inverse_participation"),
        (
            AFL(),
            {"attack": af.attacks.Liars(attack=af.attacks.SignFlip(), clients=(1,))},
            "needs something of every client",
        ),
        (AFL(), {"churn": (af.Churn(time=1.0, client=0, event="join"),)}, "churn lets client 0 join"),
    ],
)
def test_what_does_is_refused_before_a_run(strategy, changes, words, tmp_path):
    with pytest.raises(ConfigError, match=words) as refusal:
        af.run(described(strategy, **changes), out=tmp_path / "run.sqlite")
    assert "1,000,000" in str(refusal.value)
    assert not list(tmp_path.iterdir())
    check_large_population(described(strategy, **changes), 1_000_000)


def test_a_client_may_leave_and_come_back():
    moves = tuple(af.Churn(time=time, client=7, event=event) for time, event in ((1.0, "leave"), (2.0, "join")))
    check_large_population(described(AFL(), churn=moves), MANY)


def test_a_live_run_is_refused_before_anything_is_started(tmp_path):
    with pytest.raises(ConfigError, match=r"A live run .* 100,000,000; the limit is 1,000,000"):
        af.run_live(described(FedBuff()), out=tmp_path / "live.sqlite")
    assert not list(tmp_path.iterdir())


PROGRAM = """
import json, sys
import asyncfed as af
from asyncfed.core.types import Budget, Work
from benchmarks.one_size import peak_gigabytes
strategy = af.strategies.FedBuff(concurrency=1000, buffer_size=100, work=Work(batch_size=20, learning_rate=0.05))
run = af.run(af.Experiment(num_clients=int(sys.argv[1]), data=af.data.Population(), strategy=strategy,
    delays=af.delays.stragglers(), budget=Budget(updates=4000)), threads=1)
print(json.dumps({"gigabytes": peak_gigabytes(), "objective": run.final["objective"], "optimum": run.optimal_value}))
"""


def test_a_hundred_million_clients_run_in_little_memory():
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(MANY)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    figures = json.loads(made.stdout)
    assert figures["gigabytes"] < 1.0  # an array of them would take 0.8 by itself
    assert figures["optimum"] < figures["objective"] < 2.5  # of 7 at the start


def test_the_preset_is_ready_for_any_number():
    large = af.presets.population(num_clients=MANY)
    assert (large.strategy.concurrency, large.strategy.buffer_size) == (1000, 100)
    small = af.presets.population(num_clients=50, strategy="afl", rounds=3)
    assert small.strategy.concurrency == 25
    assert af.run(small).verdict == "finished"
    assert af.presets.population(num_clients=50, fraction=0.1).strategy.work == Work(batch_size=20, learning_rate=0.05)
    for wrong in ({"reading": "text"}, {"fraction": 0.0}):
        with pytest.raises(ConfigError):
            af.presets.population(**wrong)
