"""The present state of runs as one page that needs no server: the pages' own files, and answers to all they ask."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from asyncfed.core.errors import JournalError
from asyncfed.dashboard.access import Viewer
from asyncfed.dashboard.answers import ANSWERS
from asyncfed.dashboard.client_numbers import client_numbers
from asyncfed.dashboard.query import Query
from asyncfed.dashboard.run_folder import RunFolder
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.run_watch import RunWatch

MOST_RUNS = 20
"""Runs that are saved whole, those changed last; of others there is what the list shows."""

MOST_CLIENTS = 200
"""Clients whose lanes and pages are saved, the silent and the slowest first."""

LANE_WIDTH = 800

STYLE = re.compile(r'<link rel="stylesheet" href="/assets/([\w.-]+)">')
SCRIPT = re.compile(r'<script type="module" src="/assets/([\w.-]+)"></script>')
IMPORT = re.compile(r'(\b(?:from|import)\s*\(?\s*)"\./([\w.-]+\.js)"')
MODULE = "asyncfed/"
"""How modules are called in a page that has no addresses."""


def make_snapshot(place: Path, assets: Path, made: float) -> str:
    """The page.

    Args:
        place: the folder of runs, or one run's file.
        assets: where the pages' own files are.
        made: the time that it says it was made at, in seconds since 1970.
    """
    watch = RunWatch(RunFolder(place))
    saved = {"made": made, "answers": _answers(watch)}
    page = (assets / "index.html").read_text()
    styles: list[str] = []

    def inline_style(found: re.Match[str]) -> str:
        styles.append((assets / found[1]).read_text())
        return f"<style>{styles[-1]}</style>"

    page = STYLE.sub(inline_style, page)
    entry = SCRIPT.search(page)
    scripts = [_import_map(assets), f'import "{MODULE}{entry[1]}";'] if entry else []
    inlined = f'<script type="application/json" id="snapshot">{_safe(json.dumps(saved, allow_nan=False))}</script>'
    if entry:
        inlined += f'\n<script type="importmap">{scripts[0]}</script>\n<script type="module">{scripts[1]}</script>'
        page = page.replace(entry[0], "")
    page = page.replace("</body>", f"{inlined}\n</body>")
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{_policy(scripts, styles)}', 1)


def _answers(watch: RunWatch) -> dict[str, Any]:
    """By address, without a query: pages then take the answer whatever they ask for."""
    cards = watch.cards()
    answers: dict[str, Any] = {
        "/api/runs": {"folder": watch.folder.path.name, "site": None, "runs": cards},
        "/api/alerts": {"rules": [], "fired": []},
    }
    for card in sorted(cards, key=lambda card: -card["changed"])[:MOST_RUNS]:
        if card["state"] != "unreadable":
            try:
                answers |= _answers_of_run(watch.view(card["id"]))
            except JournalError:
                continue  # damaged behind its header; the list shows that it is there
    return answers


def _answers_of_run(view: RunView) -> dict[str, Any]:
    limits = Query({"count": str(MOST_CLIENTS), "width": str(LANE_WIDTH)})
    address, viewer = f"/api/runs/{view.name}", Viewer()
    answers = {
        address + rest: compute(view, viewer, limits) for rest, compute in ANSWERS.items() if "{client" not in rest
    }
    of_client = next(compute for rest, compute in ANSWERS.items() if "{client" in rest)
    for client in client_numbers(view).order("silent")[:MOST_CLIENTS].tolist():
        answers[f"{address}/clients/{client}"] = of_client(view, viewer, Query({}, client))
    return answers


def _import_map(assets: Path) -> str:
    modules = {}
    for path in sorted(assets.glob("*.js")):
        text = IMPORT.sub(rf'\1"{MODULE}\2"', path.read_text())
        modules[MODULE + path.name] = f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
    return _safe(json.dumps({"imports": modules}))


def _policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing may be loaded, and no script may run but those of this page."""
    allowed = {"script-src": [*map(_digest, scripts), "data:"], "style-src": list(map(_digest, styles))}
    rules = "; ".join(" ".join([name, *(sources or ["'none'"])]) for name, sources in allowed.items())
    content = f"default-src 'none'; {rules}; img-src data:; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{content}">'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _safe(text: str) -> str:
    """JSON that ends no element, whatever texts are in it."""
    return text.replace("<", "\\u003c")
