"""The figures of a page about runs."""

import numpy as np

from asyncfed.report.page.run_page_figures import run_figures


def test_figures_of_runs_have_units_and_gaps_where_a_run_diverged(make_run):
    loss, staleness, participation = run_figures({"good": make_run(), "bad": make_run((9.0, 1e9, np.nan))})
    labels = [panel.x_label for panel in loss.panels]
    assert labels == ["rounds", "virtual time, s", "communication, down and up, kB", "energy of computing, J"]
    assert loss.panels[2].series[0].x == (0.0, 1.8, 3.6)
    assert loss.panels[0].series[1].y == (9.0, 1e9, None)
    assert staleness.panels[1].series[0].y == (3.0, 3.0)
    assert participation.panels[0].series[0].y == (0.0, 1.0, 2.0, 3.0)


def test_participation_of_many_clients_is_counted(make_run):
    (panel,) = run_figures({"many": make_run(num_clients=60)})[2].panels
    assert (panel.x_label, panel.y_label) == ("merged updates", "clients")
    assert sum(panel.series[0].y) == 60


def held_out(run):
    run.evaluations |= {
        "validation_loss": np.array([9.0, 2.0, 4.0]),
        "accuracy": np.array([0.5, 0.8, 0.9]),
        "test_accuracy": np.array([0.5, 0.7, 0.6]),
    }
    return run


def test_held_out_losses_and_accuracies_are_drawn_and_the_kept_model_is_marked(make_run):
    measured, *_ = run_figures({"one": held_out(make_run(best=1))})
    loss, accuracy = measured.panels
    assert [series.label for series in loss.series] == ["training", "validation", "model kept"]
    assert (loss.series[2].x, loss.series[2].y, loss.series[2].kind) == ((1.0,), (2.0,), "points")
    assert "one: the model of round 1" in loss.note
    assert {series.label: series.y for series in accuracy.series}["test"] == (0.5, 0.7, 0.6)


def test_of_several_runs_each_has_its_lines_and_the_note_says_what_was_kept(make_run):
    measured, *_ = run_figures({"one": held_out(make_run(best=1)), "two": held_out(make_run())})
    assert [(s.group, s.label) for s in measured.panels[0].series] == [
        (run, name) for run in ("one", "two") for name in ("training", "validation")
    ]
    assert "one" in measured.panels[0].note
    assert "two" not in measured.panels[0].note
