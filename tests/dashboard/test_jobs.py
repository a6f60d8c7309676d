"""Reports, exports and what-ifs run as processes of their own and leave the folder of runs alone."""

import time

import pytest

from .conftest import open_dashboard

RUN = "/api/runs/named.sqlite"
SEND = {"X-AsyncFed": "1"}


def wait(client, job):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        state = client.get(f"/api/jobs/{job}").json()
        if state["state"] != "running":
            return state
        time.sleep(0.1)
    raise TimeoutError


def test_an_export(runs):
    before = sorted(runs.rglob("*"))
    with open_dashboard(runs) as client:
        job = client.post(RUN + "/export", headers=SEND, json={"format": "csv"}).json()["job"]
        state = wait(client, job)
        assert state["error"] is None
        answer = client.get(state["result"]["url"])
        assert answer.text.startswith("updates,version,round,elapsed,objective")
        assert "attachment" in answer.headers["content-disposition"]
        for name in ("../x", "rounds.csv", "..%2f..%2fetc%2fpasswd"):
            assert client.get(f"/api/jobs/{job}/file/{name}").status_code == 404
        folder = client.dashboard.jobs._folder
        assert folder.exists()
    assert not folder.exists()
    assert sorted(runs.rglob("*")) == before


@pytest.mark.slow
def test_a_report_and_a_what_if(runs):
    with open_dashboard(runs) as client:
        jobs = [
            client.post(RUN + "/report", headers=SEND).json()["job"],
            client.post(RUN + "/what-if", headers=SEND, json={"strategy": "fedavg"}).json()["job"],
        ]
        assert client.post(RUN + "/report", headers=SEND).status_code == 409  # two are running
        for job in jobs:
            state = wait(client, job)
            assert state["error"] is None
            answer = client.get(state["result"]["url"])
            assert answer.headers["content-type"].startswith("text/html")
            assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
            assert "<html" in answer.text or "<!doctype" in answer.text
            assert "connect-src" not in answer.headers["content-security-policy"]  # so `default-src 'none'` holds


@pytest.mark.slow
def test_a_certificate(runs):
    with open_dashboard(runs) as client:
        job = client.post(RUN + "/certificate", headers=SEND).json()["job"]
        state = wait(client, job)
        assert state["error"] is None
        page = client.get(state["result"]["url"]).text
        assert "<h1>Certificate</h1>" in page
        assert "assumption" in page.lower()
        assert "data:image/png;base64" in page


def test_what_fails_says_why(runs):
    with open_dashboard(runs) as client:
        job = client.post(RUN + "/what-if", headers=SEND, json={"strategy": "nonsense"}).json()["job"]
        state = wait(client, job)
        assert state["state"] == "failed"
        assert "nonsense" in state["error"]


def test_what_no_page_sends_is_refused(client):
    for path, body, status in (
        ("/what-if", {"strategy": "--help"}, 409),
        ("/what-if", {"strategy": 3}, 400),
        ("/export", {"format": "exe"}, 409),
        ("/export", ["csv"], 400),
    ):
        assert client.post(RUN + path, headers=SEND, json=body).status_code == status
    assert client.post(RUN + "/report").status_code == 403  # without the header that forms cannot send
    assert client.post(RUN + "/export", headers=SEND, content=b"x" * 100_000).status_code == 400
    assert client.post(RUN + "/export", headers=SEND, content=b"{").status_code == 400
    assert client.get("/api/jobs/nothing").status_code == 404
