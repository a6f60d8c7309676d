"""Experiments and their written form."""

import tomllib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import replace, to_plain
from asyncfed.core.types import Budget, Work
from asyncfed.data import LabelDirichlet
from asyncfed.delays import Availability, Delays, Device, Exponential, LogNormal
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn
from asyncfed.experiment import changed, differences, from_dict, stored
from asyncfed.presets import DELAYS, PRESETS, STRATEGIES, delays_named, preset
from asyncfed.strategies import AFL, FedAsync, FedAvg
from asyncfed.strategies.discounts import Hinge
from asyncfed.strategies.samplers import UniformAll, Weighted
from asyncfed.strategies.schedules import DelayAware

EVERYTHING = af.Experiment(
    name="every key",
    seed=3,
    num_clients=7,
    dtype="float32",
    init="torch",
    strategy=AFL(
        concurrency=3,
        aggregate="delta_mean",
        weighting="samples",
        max_staleness=4,
        when_stale="damp",
        damping=Hinge(slope=2.0, grace=1),
        sampler=Weighted(weights=(1.0, 2.0)),
        work=Work(epochs=2, batch_size=8, learning_rate=0.1, proximal=0.5),
        schedule=DelayAware(delay_penalty=0.1, over="round"),
    ),
    delays=Delays(
        compute=LogNormal(median=1.0, sigma=0.5),
        upload=Exponential(mean=2.0),
        devices=(Device(name="phone", share=0.5, slowness=3.0),),
        availability=Availability(period=10.0, on_fraction=0.5),
        dropout=0.1,
        timeout=60.0,
    ),
    budget=Budget(rounds=3, updates=100, elapsed=1e6),
    churn=(Churn(time=1.0, client=2, event="leave"), Churn(time=2.0, client=2, event="join")),
    evaluation=Evaluation(every=2, unit="update", drift=True),
)


# ---- TOML ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_presets_survive_toml_with_every_strategy(strategy):
    for name, reading in product(["regression", "svm"], ["text", "published"]):
        experiment = preset(name)(reading=reading, strategy=strategy)
        assert af.from_toml(af.to_toml(experiment)) == experiment


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_toml(name):
    experiment = preset(name)()
    assert af.from_toml(af.to_toml(experiment)) == experiment


@pytest.mark.parametrize("delays", DELAYS)
def test_ready_made_delays_survive_toml(small, delays):
    experiment = small(delays=delays_named(delays))
    assert af.from_toml(af.to_toml(experiment)) == experiment


def test_every_key_survives_toml():
    assert af.from_toml(af.to_toml(EVERYTHING)) == EVERYTHING


def test_an_empty_text_is_the_default_experiment():
    assert af.from_toml("") == af.Experiment()


numbers = st.floats(1e-9, 1e9)


@given(
    name=st.text(st.characters(exclude_categories=("Cs",)), max_size=20),
    seed=st.integers(0, 2**62),
    rate=numbers,
    mixing=st.floats(1e-6, 1.0),
    mean=numbers,
    rounds=st.one_of(st.none(), st.integers(1, 10**9)),
    elapsed=numbers,
)
def test_any_values_survive_toml(name, seed, rate, mixing, mean, rounds, elapsed):
    experiment = af.Experiment(
        name=name,
        seed=seed,
        strategy=FedAsync(mixing=mixing, work=Work(learning_rate=rate)),
        delays=Delays(compute=Exponential(mean=mean)),
        budget=Budget(rounds=rounds, elapsed=elapsed),
    )
    assert af.from_toml(af.to_toml(experiment)) == experiment


def test_a_toml_file_runs_as_the_experiment_it_was_written_from(small, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(af.to_toml(small()))
    assert af.run(af.read_toml(path)).sha256 == af.run(small()).sha256


def test_what_is_left_out_is_not_written(small):
    written = tomllib.loads(af.to_toml(small()))
    assert written["budget"] == {"rounds": 3}
    assert "availability" not in written["delays"]


# ---- complaints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("num_clint = 3", r"it has no key `num_clint`\. Did you mean \"num_clients\"\?"),
        ("[strategy]\nkind = 'afl'\nconcurency = 3", r"\[strategy\] has no key `concurency`.*\"concurrency\""),
        ("[strategy]\nkind = 'fedavg'\nmax_stalenes = 3", r"has no key `max_stalenes`. Known: cohort_size"),
        ("[strategy]\nkind = 'afl'\n[strategy.work]\nlearning-rate = 3", "`learning-rate`.*\"learning_rate\""),
        ("[[churn]]\ntime = 1\nclient = 1\nevnt = 'join'", r"no key `evnt`. Did you mean \"event\""),
        ("[strategy]\nkind = 'alf'", r'strategy\.kind is "alf", which does not exist. Did you mean "afl"\?'),
        ("[split]\nkind = 'zzz'", r'split\.kind is "zzz".*Known: .*iid'),
        ("[strategy]\nconcurrency = 3", r"missing required field `kind` - at `strategy`"),
        ("seed = 'one'", r"Expected `int`, got `str` - at `seed`"),
        ("[budget]\nrounds = 1.5", r"Expected `int.*got `float` - at `budget\.rounds`"),
        ("[strategy]\nkind = 'afl'\naggregate = 'sum'", r"Invalid enum value 'sum' - at `strategy\.aggregate`"),
        ("[strategy]\nkind = 'afl'\nmixing = 2", r"strategy\.mixing is 2.0; it must be above 0 and at most 1"),
        ("[model]\nloss = 'hing'", r'loss is "hing".*Did you mean "hinge"'),
        ("seed = ", "is not valid TOML"),
        ("seed = -1", "seed is -1; it must be zero or a positive"),
        ("num_clients = 0", "num_clients is 0; an experiment needs at least 1"),
        ("divergence_norm = 0", "divergence_norm is 0.0; it must be positive"),
        ("[evaluation]\nevery = -1", r"evaluation\.every is -1; it must be 0 \(start and end only\) or more"),
        ("[[churn]]\ntime = 1\nclient = 10\nevent = 'join'", "churn names client 10, but clients are numbered 0 to 9"),
        ("[[churn]]\ntime = -1\nclient = 1\nevent = 'join'", r"churn\.time is -1.0; it must be zero or a positive"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_text_is_said_with_its_key(toml, words):
    with pytest.raises(ConfigError, match=words) as caught:
        af.from_toml(toml, "mine.toml")
    assert str(caught.value).startswith("mine.toml")


@pytest.mark.parametrize("events", [("join", "join"), ("leave", "leave"), ("leave", "join", "join")])
def test_a_client_that_comes_or_goes_twice_is_refused(events):
    churn = tuple(Churn(time=float(n), client=1, event=event) for n, event in enumerate(events))
    with pytest.raises(ConfigError, match=rf"client 1 {events[-1]} at {len(events) - 1} s.*must alternate"):
        af.Experiment(churn=churn)


def test_churn_must_also_fit_a_problem_of_your_own(small):
    with pytest.raises(ConfigError, match="churn names client 9, but clients are numbered 0 to 3"):
        af.run(small(num_clients=None, churn=(Churn(time=1.0, client=9, event="leave"),)), problem=small().problem())


def test_a_budget_without_end_is_refused():
    with pytest.raises(ConfigError, match="never end; set rounds, updates or elapsed"):
        af.Experiment(budget=Budget())


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read.*TOML file or the name of a preset"):
        af.read_toml(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes\.toml cannot be read"):
        af.read_toml(tmp_path / "bytes.toml")


# ---- changing and comparing ------------------------------------------------------------------------------------


def test_changed_sets_dotted_keys_and_nothing_else(small):
    before = small()
    after = changed(before, {"strategy.work.epochs": 3, "seed": 9})
    assert after == replace(
        before, seed=9, strategy=replace(before.strategy, work=replace(before.strategy.work, epochs=3))
    )


def test_changed_reaches_what_was_not_there(small):
    assert changed(small(), {"strategy.max_staleness": 3}).strategy.max_staleness == 3
    made = changed(small(), {"delays.availability.period": 9.0, "delays.availability.on_fraction": 0.5})
    assert made.delays.availability == Availability(period=9.0, on_fraction=0.5)


@pytest.mark.parametrize("kind_first", [True, False])
def test_another_kind_starts_from_its_defaults_whatever_the_order(small, kind_first):
    settings = [("split.kind", "label_dirichlet"), ("split.concentration", 0.25)]
    made = changed(small(), dict(settings if kind_first else settings[::-1]))
    assert made.split == LabelDirichlet(concentration=0.25)


def test_changed_checks_like_a_new_one(small):
    with pytest.raises(ConfigError, match=r"no key `concurency`.*\"concurrency\""):
        changed(small(), {"strategy.concurency": 3})
    with pytest.raises(ConfigError, match="Expected `int`"):
        changed(small(), {"seed.more": 3})


def test_differences_are_named_with_both_values_and_measuring_is_none(small):
    one = small()
    other = replace(one, name="another", evaluation=Evaluation(every=0), seed=4, strategy=FedAvg(cohort_size=2))
    found = differences(one, other)
    assert "seed: 0 -> 4" in found
    assert "strategy.kind: 'afl' -> 'fedavg'" in found
    assert "strategy.cohort_size: None -> 2" in found
    assert not any(line.startswith(("name", "evaluation")) for line in found)
    assert differences(one, small()) == []
    assert differences(to_plain(one), one) == []


@pytest.mark.parametrize("key", ["strategy.sampler", "budget", "churn", "delays.devices"])
def test_differences_reach_every_part(key):
    changes = {
        "strategy.sampler": {"strategy": replace(EVERYTHING.strategy, sampler=UniformAll())},
        "budget": {"budget": Budget(rounds=3)},
        "churn": {"churn": EVERYTHING.churn[:1]},
        "delays.devices": {"delays": replace(EVERYTHING.delays, devices=())},
    }
    found = differences(EVERYTHING, replace(EVERYTHING, **changes[key]))
    assert found
    assert all(line.startswith(key) for line in found)


def test_a_stored_experiment_with_parts_of_ones_own_must_be_given_again():
    with pytest.raises(JournalError, match=r"not shipped with AsyncFed.*Pass the same experiment again"):
        stored({"strategy": {"kind": "mine"}}, None)
    assert stored(to_plain(EVERYTHING), None) == EVERYTHING == from_dict(to_plain(EVERYTHING))
