from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest

from asyncfed import presets, run
from asyncfed.report.figures.run_figure import draw_run


def panels(figure):
    """The four panels by title; the axis on the right of a panel has none."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}


def line(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_four_panels_show_the_runs_numbers(make_run):
    figure = draw_run(make_run())
    shown = panels(figure)
    assert list(shown) == ["Loss per round", "Loss over time", "Staleness of merged updates", "Participation"]
    losses = shown["Loss per round"]
    assert losses.get_yscale() == "log"
    assert line(losses, "objective").get_xydata().tolist() == [[0, 9], [1, 3], [2, 1]]
    assert line(losses, "pooled loss").get_ydata() == pytest.approx([9.9, 3.3, 1.1])
    assert shown["Loss over time"].lines[0].get_xdata().tolist() == [0, 2, 4]
    assert line(shown["Staleness of merged updates"], "largest").get_ydata().tolist() == [3, 3]
    assert [bar.get_height() for bar in shown["Participation"].patches] == [0, 1, 2, 3]
    assert all(axes.get_xlabel() and axes.get_ylabel() for axes in shown.values())


def test_the_distance_has_its_own_axis_only_if_it_was_measured(make_run):
    assert len(draw_run(make_run()).axes) == 5
    without = make_run()
    del without.evaluations["distance"]
    assert len(draw_run(without).axes) == 4


def test_title_names_run_strategy_and_verdict(make_run):
    title = draw_run(make_run(verdict="starved")).get_suptitle()
    assert title.strip() == "made up: afl (latest), starved"


def test_many_clients_become_a_histogram_that_counts_each_once(make_run):
    axes = panels(draw_run(make_run(num_clients=130)))["Participation"]
    assert axes.get_ylabel() == "clients"
    assert sum(bar.get_height() for bar in axes.patches) == 130


@pytest.mark.slow
@pytest.mark.parametrize("objective", [[9.0], [9.0, np.nan], [9.0, 1e30], [0.0, 0.0, 0.0]])
def test_runs_that_went_nowhere_can_be_drawn(make_run, objective):
    assert draw_run(make_run(objective))._repr_png_().startswith(b"\x89PNG")


def test_a_diverging_curve_does_not_flatten_the_rest(make_run):
    low, high = panels(draw_run(make_run([9.0, 1.0, 1e200])))["Loss per round"].get_ylim()
    assert low < 1.0
    assert high < 1e10


@pytest.mark.slow
def test_drawing_leaves_global_settings_alone_and_works_in_threads(make_run):
    before = dict(matplotlib.rcParams)
    with ThreadPoolExecutor(2) as pool:
        pictures = list(pool.map(lambda _: draw_run(make_run())._repr_png_(), range(2)))
    assert pictures[0] == pictures[1]
    assert dict(matplotlib.rcParams) == before


def test_a_real_run_can_be_drawn():
    figure = run(presets.regression(rounds=2)).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_held_out_rows_and_accuracies_are_drawn_and_the_kept_model_is_marked(make_run):
    made = make_run(best=1)
    made.evaluations |= {"validation_loss": np.array([9.0, 2.0, 4.0]), "test_accuracy": np.array([0.0, 0.7, 0.6])}
    shown = panels(draw_run(made))
    assert line(shown["Loss per round"], "validation").get_ydata().tolist() == [9, 2, 4]
    assert line(shown["Loss per round"], "model kept").get_xdata() == [1, 1]
    assert line(shown["Loss over time"], "model kept").get_xdata() == [2, 2]
    accuracy = shown["Accuracy per round"]
    assert line(accuracy, "test").get_ydata().tolist() == [0.0, 0.7, 0.6]
    assert 0.4 < accuracy.get_ylim()[0] < 0.6  # the first model is not what the axis is for
