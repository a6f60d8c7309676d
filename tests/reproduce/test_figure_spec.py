"""Figures as their TOML files describe them."""

import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.reproduce.figure_spec import FOLDER, Arm, all_figures, read_figure, select_figures

FIGURES = all_figures()
ARM = {"label": "AFL", "preset": "regression", "reading": "text", "strategy": "afl"}


def test_the_papers_ten_figures_come_first_and_in_its_order():
    assert [figure.number for figure in FIGURES] == list(range(1, len(FIGURES) + 1))
    words = ["max_delay", "server_loss", "wall_clock", "energy", "fractions", "comparison"]
    words += ["max_delay", "server_loss", "fractions", "comparison"]
    for figure, word, task in zip(FIGURES, words, ["regression"] * 6 + ["svm"] * 4, strict=False):
        assert figure.name.endswith(f"{word}_{task}")
        assert {arm.preset for panel in figure.panels for arm in panel.arms} == {task}
        assert {panel.arms[0].reading for panel in figure.panels} == {"published", "text"}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_every_run_of_every_figure_can_be_described(figure):
    experiments = figure.experiments(1, 10)
    assert experiments
    for experiment in experiments:
        experiment.strategy.check(experiment.num_clients)


def test_the_papers_settings():
    regression, svm = (FIGURES[n].panels[0].arms[0].experiment(0.7, seed=3) for n in (4, 8))
    assert (regression.budget.rounds, svm.budget.rounds) == (400, 1000)
    assert (regression.strategy.work.epochs, svm.strategy.work.epochs) == (50, 100)
    assert (regression.strategy.work.learning_rate, svm.strategy.work.learning_rate) == (0.001, 0.0005)
    assert regression.strategy.cohort_size == svm.strategy.cohort_size == 7
    assert regression.strategy.schedule.delay_penalty == svm.strategy.schedule.delay_penalty == 0.01
    assert FIGURES[4].panels[0].arms[0].fractions == (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def test_a_rate_of_its_own_the_same_and_a_constant_one():
    own = Arm(**{**ARM, "strategy": "sync"}).experiment(0.5, 0).strategy.schedule
    same = Arm(**{**ARM, "strategy": "sync"}, rate="same").experiment(0.5, 0).strategy.schedule
    constant = Arm(**ARM, rate="constant").experiment(0.5, 0).strategy.schedule
    assert [type(rate).__name__ for rate in (own, same, constant)] == ["ConstantRate", "DelayAware", "ConstantRate"]


def test_a_varied_key_takes_each_value_for_each_seed():
    arm = Arm(**ARM, vary="strategy.concurrency", values=(1, 4))
    assert [(e.strategy.concurrency, e.seed) for e in arm.experiments(range(2), 1)] == [(1, 0), (1, 1), (4, 0), (4, 1)]


def test_figures_are_chosen_by_number_and_by_name_in_the_papers_order():
    names = [
        figure.number
        for figure in select_figures(FIGURES, ["10", "comparison_regression", "02_server_loss_regression"])
    ]
    assert names == [2, 6, 10]
    assert len(select_figures(FIGURES, [])) == len(FIGURES)


def test_a_figure_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r'no figure "comparson_svm".*Did you mean "comparison_svm"'):
        select_figures(FIGURES, ["comparson_svm"])
    with pytest.raises(ConfigError, match=f'no figure "99".*1 to {len(FIGURES)}'):
        select_figures(FIGURES, ["99"])


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("caption =", "captoin =", 'captoin.*Did you mean "caption"'),
        ("y_label =", "ylabel =", 'panels.*ylabel.*Did you mean "y_label"'),
        ("strategy =", "stratgy =", 'arms.*stratgy.*Did you mean "strategy"'),
        ("title = ", "title = =", "cannot be read as TOML"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_nearest_one(tmp_path, old, new, complaint):
    text = (FOLDER / "02_server_loss_regression.toml").read_text()
    file = tmp_path / "02_wrong.toml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=complaint):
        read_figure(file)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"vary": "seed"}, "give both"),
        ({"vary": "seed", "values": (1, 2), "at": (1.0,)}, "1 places `at`, 2 `values`"),
        ({"fractions": ()}, "fractions is empty"),
    ],
)
def test_an_arm_that_makes_no_sense_is_refused(wrong, complaint):
    with pytest.raises(ConfigError, match=complaint):
        Arm(**ARM, **wrong)
