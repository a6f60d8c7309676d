"""Nobody sees anything without a token, from another origin or under another name; a site sees itself alone."""

import json

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from asyncfed.core.errors import ConfigError
from asyncfed.dashboard.access import Access, Viewer
from asyncfed.dashboard.web_app import Dashboard

from .conftest import NAMES, TOKEN, open_dashboard

RUN = "/api/runs/named.sqlite"
GETS = ("", "/curves", "/staleness", "/clients", "/lanes", "/clients/2", "/refusals")
PATHS = ("/api/runs", *(RUN + rest for rest in GETS), "/api/compare?runs=named.sqlite", "/api/alerts", "/api/stream")


@pytest.fixture
def stranger(runs):
    with open_dashboard(runs, token=None) as client:
        yield client


@pytest.mark.parametrize("path", [*PATHS, "/api/nothing", "/api/jobs/x"])
def test_no_token_no_answer(stranger, path):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Cookie": "asyncfed-8050=no"}):
        answer = stranger.get(path, headers=headers)
        assert answer.status_code == 401
        assert set(answer.json()) == {"error"}
        assert stranger.get(f"{path}?token={TOKEN}").status_code == 401  # addresses of data are never to hold it


def test_no_token_no_page(stranger):
    for path in ("/", "/assets/index.html", "/?token=wrong", "/?token="):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "asyncfed dashboard" in answer.text


def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use(stranger):
    answer = stranger.get(f"/?token={TOKEN}&run=a%20b", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?run=a+b")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in answer.text
    assert stranger.get("/api/runs").status_code == 200  # which the client has kept


def test_a_link_in_a_mail_works_too(stranger):
    answer = stranger.get(f"/?token={TOKEN}", headers={"Sec-Fetch-Site": "cross-site"}, follow_redirects=False)
    assert answer.status_code == 200
    assert 'http-equiv="refresh"' in answer.text
    assert "set-cookie" in answer.headers


def test_the_token_leads_nowhere_else(stranger):
    for path in ("//evil.example/", "/\\evil.example", "/%2F%2Fevil.example/"):
        answer = stranger.get(f"http://127.0.0.1:8050{path}?token={TOKEN}", follow_redirects=False)
        location = answer.headers.get("location", "/")
        assert location.startswith("/")
        assert not location.startswith(("//", "/\\"))


@pytest.mark.parametrize("path", ["/api/runs", RUN, "/api/stream"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_origins_are_refused(client, path, headers):
    assert client.get(path, headers=headers).status_code == 403


def test_a_page_of_this_origin_is_not(client):
    headers = {"Origin": "http://127.0.0.1:8050", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/runs", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8050", "", "10.0.0.1"])
def test_a_name_that_leads_here_but_is_not_ours_is_refused(client, host):
    assert client.get("/api/runs", headers={"Host": host}).status_code == 403


def test_hosts():
    assert Access(host="127.0.0.1").allows_host("localhost:1")
    assert Access(host="lab.example").allows_host("lab.example:8050")
    assert not Access(host="lab.example").allows_host("192.0.2.1")
    assert Access(host="0.0.0.0").allows_host("192.0.2.1:8050")
    assert not Access(host="0.0.0.0").allows_host("evil.example")


def test_every_answer_has_its_headers(client):
    for path in ("/", "/api/runs", "/nothing", "/api/runs/nothing.sqlite"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert client.get("/api/runs").headers["cache-control"] == "no-store"


def test_there_are_no_websockets(runs):
    client = TestClient(Dashboard(runs, Access(token=TOKEN)).app(), base_url="http://127.0.0.1:8050")
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/api/stream"):
        pass
    assert refused.value.code == 1008


def test_hostile_names_are_text(client):
    answer = client.get(RUN + "/clients?count=10&order=number")
    assert answer.headers["content-type"] == "application/json"
    assert [row["name"] for row in answer.json()["clients"]] == NAMES


@pytest.mark.parametrize("token", ["short", "with space in it", 'with"quote-in-it', "käse-käse-käse"])
def test_bad_tokens_are_refused_at_the_start(token):
    with pytest.raises(ConfigError, match="token"):
        Access(token=token)


def test_tokens_of_sites_cannot_be_forged():
    access = Access(token=TOKEN)
    token = access.site_token("a.sqlite", 3)
    assert access.viewer(token) == Viewer("a.sqlite", 3)
    assert access.viewer(Access(token="another-token-x").site_token("a.sqlite", 3)) is None
    kind, scope, signature = token.split(".")
    other = access.site_token("a.sqlite", 4).split(".")[1]
    for forged in (f"{kind}.{other}.{signature}", f"{kind}.{scope}.{signature[:-1]}0"[:-2], f"{kind}.{scope}", "site..",
                   token + "x", "", None):  # fmt: skip
        assert access.viewer(forged) is None


def walk(value):
    if isinstance(value, dict):
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)
    else:
        yield value


@pytest.fixture
def site(runs):
    token = Access(token=TOKEN).site_token("named.sqlite", 2)
    with open_dashboard(runs, token=token) as client:
        yield client


def test_a_site_sees_itself_and_the_runs_own_curves(site, client):
    full, own = client.get(RUN + "/clients/2").json(), site.get(RUN + "/clients/2").json()
    assert own == full
    rows = site.get(RUN + "/clients?count=100").json()
    assert [row["client"] for row in rows["clients"]] == [2]
    assert rows["total"] == 1
    assert (
        site.get(RUN + "/curves").json()["metrics"]["objective"]
        == (client.get(RUN + "/curves").json()["metrics"]["objective"])
    )
    runs = site.get("/api/runs").json()
    assert (runs["site"], [run["id"] for run in runs["runs"]]) == (
        {"run": "named.sqlite", "client": 2},
        ["named.sqlite"],
    )
    assert runs["folder"] is None


def test_a_site_sees_no_other_sites_numbers(site, client):
    """No time, duration, weight or share of another client, no sum over clients and no name is in any answer."""
    pages = [client.get(f"{RUN}/clients/{other}").json() for other in (0, 1, 3, 4, 5)]
    theirs = {value for page in pages for value in walk(page) if isinstance(value, float)}
    theirs |= {value for value in client.get(RUN).json()["totals"].values() if value and value > 10}
    known = set(walk(client.get(f"{RUN}/clients/2").json())) | set(walk(site.get(RUN + "/curves").json()))
    # The run's clock stands at somebody's last event, and a buffer is merged when somebody fills it.
    merges = [time for time, owner in client.get(RUN + "/lanes?count=200").json()["merges"] if owner == 2]
    known |= {client.get(RUN).json()["now"], 0.0, *merges}
    assert len(theirs - known) > 200
    for path in (*PATHS[:-1], RUN + "/lanes?from=0&to=1e9&count=200", RUN + "/refusals?count=1000"):
        answer = site.get(path)
        assert answer.status_code == (403 if path.startswith("/api/compare") else 200)
        told = {value for value in walk(answer.json()) if not isinstance(value, bool)}
        assert not told & (theirs - known), path
        text = json.dumps(answer.json(), ensure_ascii=False)
        assert not [name for number, name in enumerate(NAMES) if number != 2 and name in text], path


def test_a_site_is_told_its_own_counts(site, client):
    row, summary = client.get(RUN + "/clients/2").json(), site.get(RUN).json()
    for name in ("merged", "lost", "dropped", "skipped", "refused"):
        assert summary["totals"][name] == row[name]
    hidden = ("num_clients", "events", "version", "toml", "holder", "reason", "seed", "privacy")
    assert [name for name in hidden if summary[name] is not None] == []
    assert summary["updates"] == row["merged"]
    assert "first_client_loss" not in summary["metrics"]
    assert set(summary) == set(client.get(RUN).json())
    curves = site.get(RUN + "/curves").json()
    assert {*curves["bytes"], *curves["energy"], *curves["updates"]} == {None}
    assert sum(site.get(RUN + "/staleness").json()["counts"]) == row["merged"]
    lanes = site.get(RUN + "/lanes?count=200").json()
    assert [lane["client"] for lane in lanes["clients"]] == [2]
    assert {owner for _, owner in lanes["merges"]} == {2}


@pytest.mark.parametrize(
    "path",
    ["/clients/0", "/clients/5", "/clients/999"],
)
def test_a_site_asks_in_vain_for_others(site, path):
    assert site.get(RUN + path).status_code == 403
    assert site.get("/api/runs/other~2Fplain~20run.sqlite" + path).status_code == 403


def test_a_site_may_start_nothing(site):
    headers = {"X-AsyncFed": "1"}
    for action, body in (("what-if", {"strategy": "fedavg"}), ("report", {}), ("export", {"format": "csv"}),
                         ("site-link", {"client": 1})):  # fmt: skip
        assert site.post(f"{RUN}/{action}", headers=headers, json=body).status_code == 403
    assert site.get("/api/jobs/x").status_code == 403
    assert site.get("/api/jobs/x/file/y").status_code == 403
    assert site.get("/api/alerts").json() == {"rules": [], "fired": []}
    assert site.get("/api/compare?runs=named.sqlite").status_code == 403
    assert site.get("/api/stream?runs=other~2Fplain~20run.sqlite").status_code == 403


def test_the_operator_makes_links(client, runs):
    answer = client.post(RUN + "/site-link", headers={"X-AsyncFed": "1"}, json={"client": 1}).json()
    token = answer["url"].split("token=")[1]
    with open_dashboard(runs, token=token) as site:
        assert [row["name"] for row in site.get(RUN + "/clients").json()["clients"]] == ["Ward 7"]
    for wrong in (6, -1, "1", None, True):
        answer = client.post(RUN + "/site-link", headers={"X-AsyncFed": "1"}, json={"client": wrong})
        assert answer.status_code == 404
    assert client.post(RUN + "/site-link", json={"client": 1}).status_code == 403
