"""The measures of fairness by hand, what is told apart, and small runs from end to end."""

import json

import numpy as np
import pytest

import asyncfed as af
from asyncfed.analysis.comparison import Comparison
from asyncfed.analysis.comparison_runs import Outcome
from asyncfed.analysis.fairness import MEASURES, Fairness, FairnessOutcome, compare_selections
from asyncfed.core.errors import ConfigError
from asyncfed.report.figures.fairness_figure import draw_fairness
from asyncfed.report.terminal.fairness_text import fairness_table, fairness_words
from asyncfed.strategies import FedBuff


def outcome(label, seed, losses, merges, dispatched=20, verdict="finished", times=(0.0, 1.0, 2.0), objective=(9, 3, 1)):
    evaluations = {"elapsed": np.array(times), "objective": np.array(objective, float), "round": np.arange(3)}
    run = Outcome(label, seed, verdict, "", evaluations, {}, np.array(merges), {})
    return FairnessOutcome(run, np.array(losses, float), "training", dispatched)


def fairness_of(**outcomes):
    seeds = tuple(range(len(next(iter(outcomes.values())))))
    by_seed = {name: dict(zip(seeds, found, strict=True)) for name, found in outcomes.items()}
    runs = {name: {seed: found.run for seed, found in of.items()} for name, of in by_seed.items()}
    return Fairness(Comparison("test", tuple(outcomes), seeds, runs), by_seed, 10.0)


def uniform(seed):
    return outcome("uniform", seed, [1.0, 2.0, 6.0 + seed], [6, 4, 2])


def test_measures_by_hand():
    """Merges 6, 4, 2: least 2 of 4 on average; Jain 12^2 / (3 * 56); 12 of 20 tickets merged; 95 % of 9 to 1 is 1.4."""
    found = fairness_of(uniform=[uniform(0)])
    numbers = {name: float(found.measured["uniform"][name][0]) for name in MEASURES}
    assert numbers == pytest.approx(
        {
            "time_to_target": 2.0,
            "mean_loss": 3.0,
            "worst_loss": 6.0,
            "loss_spread": np.std([1.0, 2.0, 6.0]),
            "least_share": 0.5,
            "jain_index": 144 / 168,
            "not_merged": 0.4,
        }
    )


def test_effects_are_paired_and_say_only_what_the_seeds_can_tell():
    """The worst tenth is halved with every seed, the mean is higher, and merges differ now one way, now the other."""
    found = fairness_of(
        uniform=[uniform(seed) for seed in range(4)],
        oort=[outcome("oort", s, [3.0 + s, 4.0, (6.0 + s) / 2], [6, 4, 2 + (-1) ** s]) for s in range(4)],
    )
    assert found.effect("oort", "worst_loss").verdict == "better"
    assert found.effect("oort", "mean_loss").verdict == "worse"
    assert found.effect("oort", "least_share").verdict == "not told apart"
    assert found.effect("oort", "time_to_target").verdict == "not told apart"
    [line, last] = fairness_words(found)
    bought, cost = line.split("Cost:")
    assert "loss of the worst tenth" in bought
    assert "mean loss of clients" in cost
    assert "95 % confidence intervals" in last


def test_one_seed_tells_nothing():
    found = fairness_of(uniform=[uniform(0)], fair=[uniform(0)])
    assert found.effect("fair", "mean_loss").verdict == "not told apart"
    assert fairness_words(found)[0].startswith("One seed tells nothing")
    draw_fairness(found)


def test_runs_that_diverged_or_missed_the_target_are_named_and_left_out():
    gone = [outcome("qfair", s, [np.nan] * 3, [4, 4, 4], verdict="diverged") for s in range(2)]
    late = [outcome("fair", s, [1.0, 2.0, 6.0], [4, 4, 4], objective=(9, 8, 7)) for s in range(2)]
    found = fairness_of(uniform=[uniform(0), uniform(1)], qfair=gone, fair=late)
    assert np.isnan(found.measured["qfair"]["mean_loss"]).all()
    words = "\n".join(fairness_words(found))
    assert "It diverged with 2 of 2 seeds." in words
    assert "With 2 of 2 seeds it did not reach the target." in words
    assert found.client_means("qfair")[0].size == 0
    rows = [list(column.cells) for column in fairness_table(found).columns]
    assert rows[1] == ["2 s", "never", "never"]
    assert rows[2][1] == "–"
    json.dumps(found.to_plain(), allow_nan=False)
    draw_fairness(found)


def small(**changes):
    experiment = af.presets.unequal(num_clients=6, rounds=6, strategy=FedBuff(concurrency=3, buffer_size=2))
    return af.replace(experiment, **changes)


def test_runs_end_at_the_same_time_and_give_every_number():
    found = compare_selections(small(), ["fair", "oort", "qfair"], [0, 1], workers=1)
    assert found.selections == ("uniform", "fair", "oort", "qfair")
    for of in found.outcomes.values():
        for each in of.values():
            assert each.run.evaluations["elapsed"][-1] <= found.seconds
            assert each.dispatched >= each.run.participation.sum() > 0
    columns = found.columns()
    assert {len(values) for values in columns.values()} == {8}
    assert columns["selection"][:2] == ["uniform", "uniform"]
    assert None not in columns["worst_loss"]
    plain = found.to_plain()
    assert len(plain["selections"]["oort"]["client_losses"]) == 6
    assert plain["selections"]["uniform"]["against_baseline"] == {}
    assert plain["virtual_seconds"] == found.seconds
    assert [line.split(" ")[0] for line in fairness_words(found)[:3]] == ["fair", "oort", "qfair"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seconds": 0.0}, "seconds is 0.0; the virtual time of a run must be positive"),
        ({"workers": 0}, "workers is 0"),
        ({"selections": ["worst"]}, 'There is no selection "worst"'),
        ({"seeds": []}, "there are no seeds"),
    ],
)
def test_what_is_refused(arguments, words):
    given = {"selections": ["fair"], "seeds": [0], "workers": 1, **arguments}
    with pytest.raises(ConfigError, match=words):
        compare_selections(small(), **given)


@pytest.mark.slow
def test_q_fair_weights_narrow_the_spread_of_losses_and_take_longer():
    """What the card promises, on the default experiment; as measured with five other seeds too."""
    found = compare_selections(af.presets.unequal(), ["qfair"], range(5), workers=1)
    assert found.effect("qfair", "loss_spread").verdict == "better"
    assert found.effect("qfair", "time_to_target").verdict == "worse"


@pytest.mark.slow
def test_selection_by_utility_takes_from_slow_clients_and_a_minimum_gives_it_back():
    found = compare_selections(af.presets.unequal(), ["oort", "pisces", "oort_minimum"], range(3), workers=1)
    assert found.effect("oort", "least_share").verdict == "worse"
    assert found.effect("pisces", "least_share").verdict == "worse"
    assert found.mean("oort_minimum", "least_share").mean > 5 * found.mean("oort", "least_share").mean
