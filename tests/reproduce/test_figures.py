"""From finished runs to what is drawn."""

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.reproduce.figure_spec import Arm, FigureSpec, PanelSpec
from asyncfed.reproduce.figures import figure_data
from asyncfed.reproduce.published_curves import published_curves
from asyncfed.reproduce.reproduction import Reproduction, open_workers, simulate_missing
from asyncfed.reproduce.run_measures import equal_optimum, weighted_optimum
from asyncfed.reproduce.verdicts import assess_claims

AFL = {"label": "AFL", "preset": "regression", "reading": "text", "strategy": "afl", "rounds": 4}


@pytest.fixture
def drawn_panel(tmp_path):
    def draw(seeds=2, **panel):
        spec = FigureSpec(title="t", caption="c", panels=(PanelSpec(title="p", y_label="y", **panel),), name="99_test")
        wanted = Reproduction((spec,), seeds, 1, tmp_path)
        with open_workers(1) as pool:
            simulate_missing(wanted, pool)
        return figure_data(spec, wanted.runs_of(spec), "again").panels[0], wanted, spec

    return draw


def test_the_paper_averages_over_fractions_seed_by_seed(drawn_panel):
    arm = Arm(**AFL, fractions=(0.2, 0.5))
    panel, wanted, spec = drawn_panel(arms=(arm,), y="objective", mean="mean", band="range")
    runs = wanted.runs_of(spec)
    of_runs = [[run.outcome.objective[1:] for run in runs.of(arm, fraction)] for fraction in arm.fractions]
    assert [series.label for series in panel.series] == ["20%", "50%", "mean"]
    assert panel.series[-1].emphasis
    assert panel.series[-1].y == pytest.approx(np.mean(of_runs, axis=(0, 1)), rel=1e-5)
    assert panel.series[0].low == pytest.approx(np.min(of_runs[0], axis=0), rel=1e-5)
    assert panel.series[0].x == (1, 2, 3, 4)


def test_two_definitions_of_wall_clock_and_the_time_that_passed(drawn_panel):
    columns = ("cumulative_spread", "cumulative_longest", "elapsed")
    arms = tuple(Arm(**{**AFL, "label": y, "strategy": "sync"}, y=y) for y in columns)
    panel, _, _ = drawn_panel(seeds=1, arms=arms, y="elapsed", band="range")
    spread, longest, elapsed = (series.y for series in panel.series)
    assert longest == pytest.approx(elapsed, rel=1e-5)  # behind a barrier every round takes as long as its longest
    assert all(a < b for a, b in zip(spread, longest, strict=True))


def test_the_published_runs_are_drawn_where_they_are_known(drawn_panel):
    arm = Arm(**{**AFL, "reading": "published", "strategy": "published"}, fractions=(0.2, 0.3))
    panel, _, _ = drawn_panel(seeds=1, arms=(arm,), y="first_client_loss", published_points=True)
    dots = [series for series in panel.series if series.kind == "points"]
    assert [(series.label, series.group, series.x) for series in dots] == [("published run, 20%", "20%", (1.0,))]
    assert dots[0].y[0] == published_curves()["regression", "published", 0.2][0]


def test_a_sweep_says_which_runs_diverged(drawn_panel):
    arm = Arm(
        **{**AFL, "strategy": "afl_delta_sum", "rounds": 60, "delays": "none"},
        vary="strategy.concurrency",
        values=(1, 10),
    )
    panel, _, _ = drawn_panel(arms=(arm,), shows="sweep", x="largest_staleness", y="last_objective")
    assert panel.series[0].x == (0, 9)
    assert panel.series[0].y[0] is not None
    assert panel.series[0].y[1] is None
    assert panel.note == "AFL: runs diverged (2 of 2 at 9)."


def test_shares_of_merges_add_up(drawn_panel):
    slowness = {"delays.slowness": {"kind": "lognormal", "median": 1.0, "sigma": 1.0}}
    arm = Arm(**AFL, delays="none", settings=slowness)
    panel, _, _ = drawn_panel(seeds=2, arms=(arm,), shows="participation", y="share", x="slowness")
    assert sum(panel.series[0].y) == pytest.approx(2.0, rel=1e-4)
    assert list(panel.series[0].x) == sorted(panel.series[0].x)


def test_a_column_axis_or_measure_that_does_not_exist_is_refused(drawn_panel):
    with pytest.raises(ConfigError, match=r'no column "objektive".*"objective"'):
        drawn_panel(arms=(Arm(**AFL),), y="objektive")
    with pytest.raises(ConfigError, match=r'no axis "elapsd".*"elapsed"'):
        drawn_panel(arms=(Arm(**AFL),), y="objective", x="elapsd")
    with pytest.raises(ConfigError, match=r'no measure "last_objectiv".*"last_objective"'):
        drawn_panel(arms=(Arm(**AFL, vary="seed", values=(1,)),), shows="sweep", y="last_objectiv", x="varied")


def test_equal_shares_give_the_objectives_own_optimum():
    experiment = Arm(**AFL).experiment(0.5, 0)
    optimum = experiment.problem().optimum()
    assert equal_optimum(experiment) == pytest.approx(optimum)
    alone = weighted_optimum(experiment, np.eye(10)[0])
    assert experiment.problem().client_loss(alone, 0) < experiment.problem().client_loss(optimum, 0)


def test_a_figure_brings_the_claims_it_shows_in_both_readings(finished):
    findings = assess_claims({figure.number: (figure, finished.runs_of(figure)) for figure in finished.figures})
    assert [(found.id, found.reading) for found in findings] == [
        ("regression-converges", "published"),
        ("regression-converges", "text"),
    ]
    assert all(found.low <= found.number <= found.high for found in findings)
