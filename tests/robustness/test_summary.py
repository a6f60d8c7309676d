"""Arithmetic by hand, on results that nobody ran."""

import math

import pytest

from asyncfed.core.record import replace
from asyncfed.robustness.findings import findings
from asyncfed.robustness.measured_run import RunOutcome, UpdateCounts
from asyncfed.robustness.scenarios import HONEST, Cell, Scenario
from asyncfed.robustness.study import CellResult, StudyPlan, StudyResults
from asyncfed.robustness.summary import break_points, costs, summarise

REGRESSION = Scenario("regression", "iid", "stragglers")
DIGITS = Scenario("digits", "iid", "equal")
COUNTS = UpdateCounts(arrived=20, lying_arrived=5, merged=12, lying_merged=3, filtered=8, lying_filtered=2)


def run(excess, accuracy=None, time=4.0, counts=COUNTS):
    return RunOutcome("finished", "", 1.0, excess, accuracy, time, counts)


LOST = RunOutcome("diverged", "too large", 1.0, None, None, None, COUNTS)


def study(*cells):
    results = tuple(CellResult(cell, tuple(runs)) for cell, runs in cells)
    plan = StudyPlan(tuple(cell for cell, _ in cells), (1, 2), False)
    return StudyResults(plan, results, "code")


def honest(defence, scenario=REGRESSION):
    return Cell(scenario, defence, HONEST, 0.0)


def lying(defence, share, scenario=REGRESSION, attack="sign_flip"):
    return Cell(scenario, defence, attack, share)


def rows_of(*cells):
    return {row.cell: row for row in summarise(study(*cells))}


def test_a_ratio_is_the_geometric_mean_over_seeds_to_the_undefended_honest_run():
    rows = rows_of(
        (honest("fedbuff"), [run(1.0), run(2.0)]),
        (honest("median"), [run(2.0), run(2.0)]),
        (lying("median", 0.3), [run(1.0), run(8.0)]),
        (lying("fedbuff", 0.3), [run(4.0), run(9.0)]),
    )
    assert rows[honest("fedbuff")].ratio.mean == pytest.approx(1.0)
    assert rows[honest("median")].ratio.mean == pytest.approx(math.sqrt(2.0))
    assert rows[lying("median", 0.3)].ratio.mean == pytest.approx(2.0)
    assert rows[lying("median", 0.3)].ratio.n == 2
    assert rows[lying("fedbuff", 0.3)].ratio.mean == pytest.approx(math.sqrt(4.0 * 4.5))


def test_a_defence_holds_up_to_twice_the_honest_excess():
    twice = replace(run(1.0), excess=2.0)
    rows = rows_of(
        (honest("fedbuff"), [run(1.0), run(1.0)]),
        (lying("fedbuff", 0.1), [twice, run(2.01)]),
        (lying("fedbuff", 0.2), [twice, twice]),
        (lying("fedbuff", 0.3), [run(1.0), LOST]),
    )
    assert rows[lying("fedbuff", 0.1)].verdict == "not held"
    assert rows[lying("fedbuff", 0.2)].verdict == "held"
    assert rows[lying("fedbuff", 0.3)].verdict == "diverged"
    assert rows[lying("fedbuff", 0.3)].ratio is None
    assert rows[lying("fedbuff", 0.3)].reason == "too large"


def test_a_network_is_judged_by_its_accuracy():
    rows = rows_of(
        (honest("fedbuff", DIGITS), [run(0.2, 0.95), run(0.2, 0.93)]),
        (lying("fedbuff", 0.1, DIGITS), [run(9.0, 0.93), run(9.0, 0.90)]),
        (lying("fedbuff", 0.2, DIGITS), [run(0.1, 0.91), run(0.1, 0.90)]),
    )
    assert rows[lying("fedbuff", 0.1, DIGITS)].points.mean == pytest.approx(2.5)
    assert rows[lying("fedbuff", 0.1, DIGITS)].held
    assert rows[lying("fedbuff", 0.2, DIGITS)].points.mean == pytest.approx(3.5)
    assert not rows[lying("fedbuff", 0.2, DIGITS)].held


def test_shares_of_updates_are_those_of_all_seeds_together():
    other = UpdateCounts(arrived=80, lying_arrived=15, merged=80, lying_merged=15, filtered=0, lying_filtered=0)
    rows = rows_of(
        (honest("fedbuff"), [run(1.0), run(1.0)]),
        (lying("fedbuff", 0.3), [run(1.0), run(1.0, counts=other)]),
        (lying("fedbuff", 0.4), [run(1.0, counts=other), run(1.0, counts=other)]),
    )
    row = rows[lying("fedbuff", 0.3)]
    assert row.lying_arrived == pytest.approx(20 / 100)
    assert row.lying_merged == pytest.approx(18 / 92)
    assert row.precision == pytest.approx(2 / 8)
    assert row.recall == pytest.approx(2 / 20)
    assert row.filtered_honest == pytest.approx(6 / 80)
    assert rows[lying("fedbuff", 0.4)].precision is None
    assert rows[lying("fedbuff", 0.4)].recall is None


def test_a_break_point_is_the_largest_share_below_which_all_hold():
    def cells(name, levels):
        return [(lying(name, share), [run(level)] * 2) for share, level in zip((0.1, 0.2, 0.3), levels, strict=True)]

    rows = summarise(
        study(
            (honest("fedbuff"), [run(1.0)] * 2),
            *cells("fedbuff", (5.0, 1.0, 1.0)),
            (honest("median"), [run(1.0)] * 2),
            *cells("median", (1.0, 1.0, 5.0)),
            (honest("trimmed_mean"), [run(1.0)] * 2),
            *cells("trimmed_mean", (1.0, 1.0, 1.0)),
            (honest("krum"), [run(3.0)] * 2),
            *cells("krum", (1.0, 1.0, 1.0)),
        )
    )
    found = {point.defence: (point.share, point.most) for point in break_points(rows)}
    assert found == {"fedbuff": (0.0, 0.3), "median": (0.2, 0.3), "trimmed_mean": (0.3, 0.3), "krum": (None, 0.3)}


def test_costs_are_paired_by_seed():
    rows = summarise(
        study(
            (honest("fedbuff"), [run(1.0, time=2.0), run(1.0, time=8.0)]),
            (honest("median"), [run(4.0, time=4.0), run(1.0, time=4.0)]),
            (honest("krum"), [run(1.0, time=None), run(1.0, time=8.0)]),
        )
    )
    by_name = {cost.defence: cost for cost in costs(rows)}
    assert by_name["median"].time.mean == pytest.approx(1.0)
    assert by_name["median"].level.mean == pytest.approx(2.0)
    assert by_name["fedbuff"].time.mean == pytest.approx(1.0)
    assert by_name["krum"].time is None


def test_findings_say_who_holds_and_where_nobody_does():
    def rows(undefended, median, zeno):
        cells = [("fedbuff", undefended), ("async_sgd", undefended), ("median", median), ("zeno", zeno)]
        return summarise(
            study(
                *((honest(name), [run(1.0)] * 2) for name, _ in cells),
                *((lying(name, 0.3), [run(level)] * 2) for name, level in cells),
            )
        )

    def sentence(*levels):
        [found] = findings(rows(*levels))
        return found.sentence

    assert "hurts nobody" in sentence(1.0, 1.0, 9.0)
    assert sentence(9.0, 9.0, 9.0).endswith("undefended runs fail, and no defence holds.")
    assert sentence(9.0, 1.0, 1.0).endswith("undefended runs fail; median hold; of those with trusted data, zeno.")
    assert "no defence without trusted data holds, with them zeno" in sentence(9.0, 9.0, 1.0)
