"""What is recommended, and what is said about it."""

import numpy as np
import pytest
from tests.advice.conftest import small_experiment
from tests.advice.test_scoring import run_of

import asyncfed as af
from asyncfed.advice.finalists import DEFAULT, Finalist
from asyncfed.advice.recommendation import Recommendation, SearchPoint
from asyncfed.advice.scoring import Target
from asyncfed.advice.sentences import finalist_rows, sentences
from asyncfed.report.figures.advice_figures import FRONT, finalists_figure, not_dominated, pareto_figure
from asyncfed.report.page.advice_page import Advice

SEEDS = (1000, 1001, 1002, 1003)


def finalist(label, strategy, delays):
    """Runs that reach the target after so many seconds, one for each seed; None if never."""
    runs = {
        seed: run_of([10.0] * delay + [0.5] * (30 - delay) if delay else [10.0] * 30, worst=float(delay or 40))
        for seed, delay in zip(SEEDS, delays, strict=True)
    }
    return Finalist(label, strategy, {"rate": strategy.work.learning_rate}, runs)


def recommendation(aim="time", favourite=None, **delays):
    experiment = small_experiment()
    strategies = {"fedasync": af.strategies.FedAsync(), "fedbuff": af.strategies.FedBuff()}
    finalists = {
        label: finalist(label, strategies.get(label, af.strategies.FedAvg()), of_label)
        for label, of_label in {**delays, "fedavg": (10, 11, 12, 13), DEFAULT: (20, 21, None, 23)}.items()
    }
    points = (
        SearchPoint("fedasync", "rate 1", 1.0, 9.0, 3.0, 2.0),
        SearchPoint("fedavg", "rate 2", 4.0, 2.0, 5.0, None),
    )
    target = Target("objective", 10.0, 0.0, 0.9)
    found = Recommendation(
        experiment, aim, target, 30.0, finalists, "fedavg", SEEDS, points, 99, ("a note",), favourite
    )
    return Advice.of(found)


def test_who_beats_synchronous_fedavg_is_recommended_with_what_it_saves():
    advice = recommendation(fedasync=(2, 2, 3, 3), fedbuff=(2, 3, 2, 3))
    assert advice.winner == "fedasync"
    assert advice.beats_synchronous
    assert advice.not_distinguishable == ["fedbuff"]
    ratio = advice.ratio("fedasync", "fedavg")
    assert ratio.mean == pytest.approx(np.exp(np.mean(np.log(np.array([2, 2, 3, 3]) / np.array([10, 11, 12, 13])))))
    text = " ".join(sentences(advice))
    assert "times the virtual time to the target of synchronous FedAvg with its own best settings" in text
    assert "Not distinguishable from it with these seeds: fedbuff." in text
    assert "that missed the target with 1 of 4 seeds" in text


def test_the_races_favourite_is_recommended_unless_another_is_certainly_better():
    close = recommendation(favourite="fedasync", fedasync=(2, 3, 3, 3), fedbuff=(3, 2, 2, 3))
    assert close.ranking[0] == "fedbuff"
    assert close.winner == "fedasync"
    assert close.not_distinguishable == ["fedbuff"]
    far = recommendation(favourite="fedasync", fedasync=(5, 6, 5, 6), fedbuff=(3, 2, 2, 3))
    assert far.winner == "fedbuff"
    late = recommendation(favourite="fedasync", fedasync=(1, 1, 1, None), fedbuff=(3, 2, 2, 3))
    assert late.winner == "fedbuff"


def test_if_nothing_beats_synchronous_fedavg_it_says_so():
    advice = recommendation(fedasync=(9, 14, 10, 14))
    assert advice.winner == "fedavg"
    assert not advice.beats_synchronous
    assert "Nothing beats synchronous FedAvg with its own best settings" in sentences(advice)[1]
    assert advice.recommended.strategy == af.strategies.FedAvg()


def test_one_that_missed_the_target_with_a_seed_ranks_below_all_others():
    advice = recommendation(fedasync=(1, 1, 1, None))
    assert advice.ranking[0] == "fedavg"
    assert advice.missed("fedasync") == 1
    assert finalist_rows(advice)[-2]["time, s"].startswith(">")


def test_where_the_other_missed_the_target_the_ratio_is_an_upper_bound():
    advice = recommendation(fedasync=(2, 2, 2, 2))
    assert advice.costs(DEFAULT, "elapsed").tolist() == [20.0, 21.0, 30.0, 23.0]
    assert advice.costs(DEFAULT, "bytes").tolist() == [200.0, 210.0, 300.0, 230.0]


def test_for_the_worst_clients_their_losses_are_compared():
    advice = recommendation("worst_clients", fedasync=(5, 5, 6, 6))
    assert advice.winner == "fedasync"
    assert "It has 0.4" in sentences(advice)[1]


def test_the_recommended_experiment_has_the_winners_strategy_and_can_be_read_again():
    advice = recommendation(fedasync=(2, 2, 3, 3))
    experiment = af.from_toml(advice.to_toml())
    assert experiment == advice.recommended
    assert experiment.strategy == af.strategies.FedAsync()
    assert experiment.budget == af.Budget(updates=29)


def test_it_prints_itself():
    text = str(recommendation(fedasync=(2, 2, 3, 3)))
    assert text.startswith("Recommended: fedasync (rate 0.01).")
    assert "a note" in text
    assert max(map(len, text[text.index("finalists\n") :].splitlines()[:8])) < 100
    assert repr(recommendation(fedasync=(2, 2, 3, 3))) == "Advice(fedasync: rate 0.01)"


def test_the_figures_show_all_settings_and_the_front():
    advice = recommendation(fedasync=(2, 2, 3, 3))
    time_and_bytes, _, worst = pareto_figure(advice).panels
    assert [series.label for series in time_and_bytes.series] == ["fedasync", "fedavg", FRONT]
    assert time_and_bytes.series[-1].x == (1.0, 4.0)
    assert len(worst.series) == 2, "what is not known is left out"
    assert [series.label for series in finalists_figure(advice).panels[0].series][-1] == "target"
    assert not_dominated([1.0, 1.0, 2.0], [2.0, 1.0, 1.0]) == [1]


def test_the_toml_is_written_or_it_is_said_why_not(tmp_path):
    advice = recommendation(fedasync=(2, 2, 3, 3))
    assert advice.save_toml(tmp_path / "new" / "recommended.toml").read_text() == advice.to_toml()
    with pytest.raises(af.errors.ConfigError, match="cannot be written"):
        advice.save_toml(tmp_path / "new" / "recommended.toml" / "in_a_file.toml")
