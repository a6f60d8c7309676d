from dataclasses import replace

import numpy as np
import pytest

from asyncfed.analysis.comparison import Comparison
from asyncfed.core.errors import ConfigError
from asyncfed.report.figures.comparison_figure import draw_comparison, draw_measurements, draw_time_to_target


def texts(figure):
    return [text.get_text() for text in figure.texts]


def test_four_axes_with_units(comparison):
    figure = draw_comparison(comparison)
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["rounds", "virtual time, s", "communication, down and up, kB", "energy of computing, J"]
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in figure.axes)


def test_lines_are_geometric_means_in_the_units_of_the_axis(comparison):
    figure = draw_comparison(comparison)
    fast = next(line for line in figure.axes[2].lines if line.get_label() == "fast")
    assert fast.get_xdata()[[0, -1]] == pytest.approx([1.8, 3.6])
    assert fast.get_ydata()[[0, -1]] == pytest.approx([np.sqrt(2 * 3), 1.0])


def test_the_target_is_drawn_in_every_panel(comparison):
    for axes in draw_comparison(comparison).axes:
        assert any(set(line.get_ydata()) == {1.5} for line in axes.lines)


def test_divergence_is_said_in_legend_and_caption(comparison):
    figure = draw_comparison(comparison)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["slow", "fast", "late", "wild (diverged)"]
    assert "DIVERGED: wild 2 of 2" in texts(figure)[-1]


def test_one_seed_has_no_band_and_says_so(comparison):
    runs = {label: {0: of_seed[0]} for label, of_seed in comparison.runs.items()}
    figure = draw_comparison(Comparison("made up", comparison.labels, (0,), runs))
    assert "one seed, hence no band" in texts(figure)[-1]


def test_a_comparison_in_which_everything_diverged_can_be_drawn(comparison):
    lost = Comparison("made up", ("wild",), (0, 1), {"wild": comparison.runs["wild"]})
    draw_comparison(lost).canvas.draw()
    draw_time_to_target(lost, "wild").canvas.draw()


def test_dots_are_the_paired_ratios(comparison):
    rounds, clock = draw_time_to_target(comparison, "slow").axes
    assert sorted(clock.lines[0].get_xdata()) == pytest.approx([1 / 9, 1 / 4])
    assert rounds.lines[0].get_xdata().tolist() == [1.0, 1.0]
    words = [text.get_text() for text in clock.texts]
    assert words == ["0.17×", "1×", "target never reached"]
    assert "slow" in clock.get_xlabel()


def test_intervals_lie_within_the_frame(comparison):
    _, clock = draw_time_to_target(comparison, "slow").axes
    found = comparison.ratio("fast", "slow", "elapsed")
    low, high = clock.get_xlim()
    assert low < found.low < found.high < high


def test_ratio_rows_name_all_but_the_baseline(comparison):
    rounds, _ = draw_time_to_target(comparison, "fast").axes
    assert [label.get_text() for label in rounds.get_yticklabels()] == ["slow", "late", "wild"]


def test_unknown_baseline_is_refused(comparison):
    with pytest.raises(ConfigError, match='no strategy "nobody"'):
        draw_time_to_target(comparison, "nobody")


def test_accuracies_have_a_linear_scale_and_all_that_was_measured_is_drawn(comparison):
    for of_seed in comparison.runs.values():
        for run in of_seed.values():
            run.evaluations["test_accuracy"] = 1.0 / (1.0 + np.nan_to_num(run.objective, nan=1e9))
    figure = draw_measurements(replace(comparison, metric="test_accuracy", asked_target=0.4))
    shown = {axes.get_ylabel(): axes.get_yscale() for axes in figure.axes if axes.get_visible()}
    assert shown == {"objective": "log", "test accuracy": "linear"}
    assert "test accuracy ≥ 0.4" in texts(figure)[-1]


def test_runs_that_diverged_before_their_first_round_can_be_drawn(comparison):
    for run in comparison.runs["wild"].values():
        run.evaluations["objective"][1:] = np.nan
    lost = Comparison("made up", ("wild",), (0, 1), {"wild": comparison.runs["wild"]}, 100.0)
    draw_comparison(lost).canvas.draw()
