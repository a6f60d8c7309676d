"""Runs of the folder are found, whatever their names; nothing outside of it ever is."""

import os
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfed.dashboard.run_folder import NoSuchRunError, RunFolder, relative_path, run_id

from .conftest import open_dashboard


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1))
def test_names_in_addresses_lead_back(path):
    name = run_id(path)
    assert relative_path(name) == path
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~")


@pytest.fixture
def folder(tmp_path, runs):
    folder = tmp_path / "folder"
    shutil.copytree(runs, folder)
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.copy(runs / "named.sqlite", outside / "secret.sqlite")
    (folder / "link.sqlite").symlink_to(outside / "secret.sqlite")
    (folder / "link to folder").symlink_to(outside)
    (folder / "loop.sqlite").symlink_to(folder / "loop.sqlite")
    (folder / "inside.sqlite").symlink_to(folder / "named.sqlite")
    (folder / ".hidden.sqlite.12.new").write_bytes(b"")
    os.mkfifo(folder / "pipe.sqlite")
    return folder


def test_links_within_are_followed_and_links_out_are_not(folder):
    assert list(RunFolder(folder).paths()) == ["inside.sqlite", "named.sqlite", "other~2Fplain~20run.sqlite"]


TRAVERSALS = (
    "link.sqlite", "link~20to~20folder~2Fsecret.sqlite", "..~2Foutside~2Fsecret.sqlite", "loop.sqlite", "pipe.sqlite",
    "~2Fetc~2Fpasswd", "other~2F..~2F..~2Foutside~2Fsecret.sqlite", "..", ".", "other", "named.sqlite~00", "~", "~2",
    "nothing.sqlite", ".hidden.sqlite.12.new", "%2e%2e%2foutside%2fsecret.sqlite", "..%2Foutside%2Fsecret.sqlite",
    "~2E~2E~2Foutside~2Fsecret.sqlite", "named.sqlite-wal",
)  # fmt: skip


def test_nothing_outside_is_opened(folder):
    found = RunFolder(folder)
    for name in TRAVERSALS:
        with pytest.raises(NoSuchRunError):
            found.find(name)
    with open_dashboard(folder) as client:
        assert len(client.get("/api/runs").json()["runs"]) == 3
        for name in TRAVERSALS:
            if name not in ("..", "."):
                assert client.get(f"/api/runs/{name}").status_code == 404, name
                assert client.get(f"/api/runs/{name}/curves").status_code == 404
                answer = client.post(f"/api/runs/{name}/report", headers={"X-AsyncFed": "1"})
                assert answer.status_code == 404
        for path in ("/assets/../web_app.py", "/assets/%2e%2e/web_app.py", "/assets/..%2fweb_app.py"):
            assert client.get(path).status_code == 404


def test_a_run_that_becomes_a_link_is_no_longer_shown(folder, tmp_path):
    with open_dashboard(folder) as client:
        assert client.get("/api/runs/named.sqlite").status_code == 200
        (folder / "named.sqlite").unlink()
        (folder / "named.sqlite").symlink_to(tmp_path / "outside" / "secret.sqlite")
        client.dashboard.watch.look()
        assert client.get("/api/runs/named.sqlite").status_code == 404


def test_one_run_alone(runs):
    with open_dashboard(runs / "named.sqlite") as client:
        assert [run["id"] for run in client.get("/api/runs").json()["runs"]] == ["named.sqlite"]
        assert client.get("/api/runs/named.sqlite").status_code == 200
        assert client.get("/api/runs/other~2Fplain~20run.sqlite").status_code == 404
