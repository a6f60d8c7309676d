from functools import cache
from importlib import import_module

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import from_plain, to_plain
from asyncfed.data import (
    IID,
    Clients,
    ConceptShift,
    CovariateShift,
    HeterogeneityReport,
    InOrder,
    LabelDirichlet,
    PaperClassification,
    PaperRegression,
    Published,
    QuantileDirichlet,
    QuantitySkew,
    measure_heterogeneity,
)

REGRESSION = PaperRegression()
CLASSIFICATION = PaperClassification()


@cache
def report_on(data, split, seed=0, num_clients=10):
    """Several tests look at the same report."""
    assignment = split.assign(data.generate(seed), num_clients, seed)
    clients = Clients.pack(assignment.table, assignment.client_of_row, assignment.num_clients)
    return measure_heterogeneity(clients, split.claimed_skew, seed)


@pytest.mark.slow
@pytest.mark.parametrize("data", [REGRESSION, CLASSIFICATION], ids=["regression", "classification"])
def test_the_published_split_is_found_out_as_iid_at_most_seeds(data):
    reports = [report_on(data, Published(), seed) for seed in range(6)]
    assert sum(not report.matches_claim for report in reports) >= 5
    caught = next(report for report in reports if not report.matches_claim)
    assert caught.verdict.startswith("claimed to be non-IID in target; indistinguishable from IID (")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "split", "aspect"),
    [
        (REGRESSION, QuantileDirichlet(concentration=0.3), "target"),
        (CLASSIFICATION, LabelDirichlet(concentration=0.3), "target"),
        (REGRESSION, QuantitySkew(), "sizes"),
        (REGRESSION, CovariateShift(concentration=0.3), "features"),
        (REGRESSION, ConceptShift(), "concept"),
        (CLASSIFICATION, ConceptShift(), "concept"),
    ],
)
def test_real_skew_is_found_in_the_respect_asked_for(data, split, aspect):
    for seed in range(2):
        report = report_on(data, split, seed)
        assert report.matches_claim
        assert report.verdict.startswith(f"non-IID in {aspect} (")
        assert report.test(aspect).statistic > 1.2 * report.test(aspect).expected


def test_a_skew_in_one_respect_leaves_the_unrelated_ones_alone():
    skewed_sizes = report_on(REGRESSION, QuantitySkew(), 1)
    assert [test.aspect for test in skewed_sizes.tests if test.differs] == ["sizes"]
    other_concept = report_on(REGRESSION, ConceptShift(), 1)
    assert not other_concept.test("features").differs
    assert not other_concept.test("sizes").differs


@pytest.mark.slow
def test_iid_p_values_are_spread_over_the_unit_interval():
    small = PaperRegression(num_samples=300, num_features=3)
    reports = [report_on(small, IID(), seed, num_clients=6) for seed in range(24)]
    for aspect in ("target", "features", "concept"):
        p = np.array([report.test(aspect).p_value for report in reports])
        assert (p < 0.05).sum() <= 5
        assert 0.3 < p.mean() < 0.7
        assert p.max() > 0.7
    assert sum(report.matches_claim for report in reports) >= 22


@pytest.mark.slow
def test_smaller_concentration_is_measured_as_more_heterogeneous():
    small = PaperRegression(num_samples=1000, num_features=2)
    found = [
        np.mean([report_on(small, QuantileDirichlet(concentration=c), s).test("target").statistic for s in range(3)])
        for c in (0.1, 1.0, 100.0)
    ]
    assert found[0] > 1.5 * found[1] > 1.5 * found[2]


def test_sizes_are_described():
    clients = Clients.from_lists([np.ones((n, 1)) for n in (1, 2, 9)], [np.arange(n) for n in (1, 2, 9)])
    report = measure_heterogeneity(clients)
    assert (report.num_clients, report.num_rows) == (3, 12)
    assert (report.smallest, report.median, report.largest) == (1, 2.0, 9)
    assert report.gini == pytest.approx(16 / 36)
    # Against 4 each: (9 + 4 + 25) / 4.
    assert report.test("sizes").statistic == pytest.approx(9.5)
    assert report.test("sizes").expected == 2.0
    assert report.test("sizes").p_value == pytest.approx(np.exp(-9.5 / 2))


def test_margins_hardly_mistake_skewed_labels_for_another_concept():
    for seed in range(2):
        skewed = report_on(CLASSIFICATION, LabelDirichlet(concentration=0.3), seed)
        turned = report_on(CLASSIFICATION, ConceptShift(), seed)
        assert skewed.test("concept").statistic < 0.5 * turned.test("concept").statistic


def test_an_exact_law_leaves_no_concept_to_differ():
    exact = PaperRegression(noise=0.0)
    report = report_on(exact, QuantileDirichlet(concentration=0.1))
    assert report.test("target").differs
    assert report.test("concept").p_value == 1.0


def test_too_few_rows_for_a_fit_are_reported_as_untested():
    report = report_on(PaperRegression(num_samples=20), IID(), num_clients=2)
    assert report.test("concept").p_value == 1.0
    assert report.notes == ("concept is untested: 20 rows are too few for a fit of 11 parameters",)


def test_a_single_client_is_never_different():
    report = report_on(PaperRegression(num_samples=50, num_features=2), IID(), num_clients=1)
    assert [test.p_value for test in report.tests] == [1.0] * 4


def test_many_clients_and_rows_are_sampled_and_it_is_said(monkeypatch):
    # By name the package gives the function; the module of the same name is asked for here.
    monkeypatch.setattr(import_module("asyncfed.data.heterogeneity_measurement"), "MAX_ROWS", 1000)
    report = report_on(
        PaperRegression(num_samples=6000, num_features=2), QuantileDirichlet(concentration=0.3), num_clients=250
    )
    assert report.notes[0] == "tests use 200 of 250 clients, drawn at random"
    assert report.notes[1].startswith("tests use ")
    assert "rows, drawn at random" in report.notes[1]
    assert report.num_clients == 250
    assert report.matches_claim


def test_more_features_than_are_compared_still_give_a_report():
    wide = report_on(PaperRegression(num_samples=900, num_features=230), IID(), num_clients=3)
    assert wide.test("features").p_value > 0.005
    assert wide.test("concept").statistic > 0


def test_the_same_seed_gives_the_same_report():
    small = PaperRegression(num_samples=200, num_features=2)
    anew = report_on.__wrapped__
    assert anew(small, Published(), 3) == anew(small, Published(), 3)


def test_lines_hold_sizes_every_lens_notes_and_the_verdict():
    report = report_on(PaperRegression(num_samples=20), InOrder(), num_clients=2)
    lines = report.lines()
    assert lines[0] == "2 clients, 20 rows: sizes 10 to 10 (median 10), Gini 0.00"
    assert [line.split()[0] for line in lines[1:5]] == ["sizes", "target", "features", "concept"]
    assert lines[5].startswith("  note: concept is untested")
    assert lines[-1] == f"verdict: {report.verdict}"


def test_a_report_survives_plain_text():
    report = report_on(PaperRegression(num_samples=60, num_features=2), Published(), num_clients=3)
    assert from_plain(to_plain(report), HeterogeneityReport) == report


def test_an_unknown_respect_is_refused():
    clients = Clients.from_lists([np.ones((2, 1))], [[1.0, 2.0]])
    with pytest.raises(ConfigError, match=r'claimed_skew names "targets"\. Did you mean "target"\?'):
        measure_heterogeneity(clients, frozenset({"targets"}))
