"""A snapshot holds everything its page asks for, loads nothing, and no text in it can become a script."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from asyncfed.cli.app import app
from asyncfed.dashboard.snapshot import make_snapshot
from asyncfed.dashboard.web_app import ASSETS

from .conftest import NAMES


@pytest.fixture
def assets(tmp_path):
    """Pages of two modules and one style sheet."""
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "index.html").write_text(
        '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n<link rel="stylesheet" href="/assets/a.css">\n'
        '<script type="module" src="/assets/main.js"></script>\n</head>\n<body>\n</body>\n</html>\n'
    )
    (folder / "a.css").write_text("body { color: red }")
    (folder / "main.js").write_text('import { a } from "./other.js";\nimport "./other.js";\na();')
    (folder / "other.js").write_text('export const a = () => import("./main.js");')
    return folder


class Page(HTMLParser):
    """The elements of a page with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2] += data

    def find(self, tag, **attributes):
        wanted = attributes.items()
        return [found for found in self.elements if found[0] == tag and wanted <= found[1].items()]


def test_all_is_in_the_page(runs, assets):
    text = make_snapshot(runs, assets, made=12.5)
    page = Page(text)
    ((_, _, content),) = page.find("script", id="snapshot")
    saved = json.loads(content)
    assert saved["made"] == 12.5
    for run in ("named.sqlite", "other~2Fplain~20run.sqlite"):
        for rest in ("", "/curves", "/lanes", "/clients", "/staleness", "/refusals", "/clients/0", "/clients/5"):
            assert f"/api/runs/{run}{rest}" in saved["answers"]
    names = [row["name"] for row in saved["answers"]["/api/runs/named.sqlite/clients"]["clients"]]
    assert sorted(names) == sorted(NAMES)
    assert "<script>alert" not in text
    assert not re.search(r'(src|href)="/', text)


def test_only_the_scripts_and_styles_of_the_page_may_run(runs, assets):
    page = Page(make_snapshot(runs, assets, made=0.0))
    ((_, policy, _),) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    for tag, attributes in (("script", {"type": "importmap"}), ("script", {"type": "module"}), ("style", {})):
        for _, _, content in page.find(tag, **attributes):
            digest = base64.b64encode(hashlib.sha256(content.rstrip("\n").encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy["content"], tag
    assert policy["content"].startswith("default-src 'none'")
    assert "unsafe" not in policy["content"]


def test_modules_find_each_other_without_addresses(runs, assets):
    page = Page(make_snapshot(runs, assets, made=0.0))
    ((_, _, content),) = page.find("script", type="importmap")
    modules = {
        name: base64.b64decode(url.split(",")[1]).decode() for name, url in json.loads(content)["imports"].items()
    }
    assert modules["asyncfed/main.js"].startswith('import { a } from "asyncfed/other.js";\nimport "asyncfed/other.js";')
    assert 'import("asyncfed/main.js")' in modules["asyncfed/other.js"]


def test_the_command_writes_the_page_and_ends(runs, tmp_path):
    answer = CliRunner().invoke(app, ["dashboard", str(runs), "--snapshot", str(tmp_path / "out.html")])
    assert answer.exit_code == 0
    assert (tmp_path / "out.html").read_text() == make_snapshot(runs, ASSETS, _made(tmp_path / "out.html"))


def _made(path):
    return json.loads(re.search(r'id="snapshot">(.*?)</script>', path.read_text())[1])["made"]
