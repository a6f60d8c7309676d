"""Ratios, verdicts and claims of outcomes that are written by hand."""

import pytest

from asyncfed.communication.claims import FAILS, HOLDS, judge
from asyncfed.communication.entry import Entry, EntryRequest, Trial
from asyncfed.communication.measured_run import Point, RunOutcome
from asyncfed.communication.study import StudyPlan, StudyResults
from asyncfed.communication.summary import summarise

FIRST = Point(0.0, 0, 0, 0, 1.0, None)


def _reached(bytes_up, uploads, seconds):
    return RunOutcome("reached", "", (FIRST, Point(seconds, bytes_up, 1000, uploads, 0.01, None)), 0.01)


def _missed(left, verdict="never", reason=""):
    return RunOutcome(verdict, reason, (FIRST, Point(9.0, 10, 10, 10, left, None)), left)


def _rows(**codecs):
    entries = []
    for codec, runs in codecs.items():
        request = EntryRequest("regression", "fedbuff", codec, ("1_mbit",), tuple(range(1, len(runs) + 1)))
        entries.append(Entry(request, (Trial(0.1, runs[0]),), 0.1, (tuple(runs),)))
    plan = StudyPlan(tuple(entry.request for entry in entries), False)
    return {row.cell.codec: row for row in summarise(StudyResults(plan, tuple(entries), "code"))}


WHOLE = (_reached(8000, 10, 4.0), _reached(2000, 10, 1.0))


def test_ratios_are_paired_by_seed():
    rows = _rows(none=WHOLE, top_k_ef=(_reached(200, 20, 2.0), _reached(50, 20, 0.5)))
    saving = rows["top_k_ef"].savings
    assert (saving["bytes_up"].ratio.mean, saving["bytes_up"].ratio.low) == (pytest.approx(40), pytest.approx(40))
    assert saving["bytes_up"].cost.mean == pytest.approx(100)
    assert saving["uploads"].ratio.mean == pytest.approx(0.5)
    assert saving["seconds"].ratio.mean == pytest.approx(2.0)
    assert saving["bytes"].ratio.mean == pytest.approx((9000 / 1200 * 3000 / 1050) ** 0.5)
    assert rows["none"].savings["bytes_up"].ratio.mean == pytest.approx(1.0)


def test_a_target_that_a_seed_missed_has_no_ratio():
    rows = _rows(none=WHOLE, top_k=(_reached(200, 20, 2.0), _missed(0.1)), qsgd=(_missed(0.1), _missed(0.4)))
    assert (rows["top_k"].verdict, rows["top_k"].reached) == ("partly reached", 1)
    assert rows["top_k"].savings["bytes_up"] == rows["qsgd"].savings["bytes_up"]
    assert rows["top_k"].savings["bytes_up"].ratio is None
    assert rows["qsgd"].verdict == "never"
    assert rows["qsgd"].least_left.mean == pytest.approx(0.2)


def test_runs_that_were_refused_say_why():
    row = _rows(none=WHOLE, qsgd=(_missed(0.5, "refused", "no such level"),) * 2)["qsgd"]
    assert (row.verdict, row.reason) == ("refused", "no such level")


def test_event_triggered_sending_is_compared_at_its_own_rate():
    runs, all_sent = (_reached(10, 4, 1.0),) * 2, (_reached(80, 20, 1.0), _reached(80, 20, 2.0))
    entries = {
        codec: Entry(EntryRequest("regression", "fedbuff", codec, ("1_mbit",), (1, 2)), (), 0.1, (some,), same_rate)
        for codec, some, same_rate in (("none", WHOLE, ()), ("send_if", runs, (runs, all_sent)))
    }
    plan = StudyPlan(tuple(entry.request for entry in entries.values()), False)
    rows = summarise(StudyResults(plan, tuple(entries.values()), "code"))
    assert rows[1].uploads_at_same_rate.mean == pytest.approx(5)
    assert rows[1].savings["uploads"].ratio.mean == pytest.approx(2.5)
    assert {claim.id: claim.verdict for claim in judge(rows)} == {"regression-uploads": HOLDS}


def _verdicts(rows):
    return {claim.id: claim.verdict for claim in judge(list(rows.values()))}


def test_claims_hold_by_the_low_end_of_the_interval():
    good = (_reached(300, 20, 1.0), _reached(75, 20, 0.25))
    stalled = (_missed(0.05), _missed(0.0505))
    verdicts = _verdicts(_rows(none=WHOLE, top_k=stalled, top_k_ef=good))
    assert verdicts == {"regression-bytes": HOLDS, "regression-time": HOLDS, "regression-stall": HOLDS}


def test_claims_fail_where_the_mean_alone_would_do():
    uneven = (_reached(100, 20, 4.0), _reached(100, 20, 0.2))
    one_arrives = (_missed(0.05), _reached(10, 10, 1.0))
    verdicts = _verdicts(_rows(none=WHOLE, top_k=one_arrives, top_k_ef=uneven))
    assert verdicts == {"regression-bytes": FAILS, "regression-time": FAILS, "regression-stall": FAILS}


def test_a_claim_about_runs_that_missed_the_target_fails():
    claims = judge(list(_rows(none=WHOLE, top_k_ef=(_missed(0.1), _reached(1, 1, 1.0))).values()))
    assert [claim.verdict for claim in claims] == [FAILS, FAILS]
    assert claims[0].reason == "1 of 2 runs reached the target"
