"""Alerts are raised once while a rule is met, and told to a webhook that cannot hold anything up."""

import http.server
import json
import threading
import time

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.dashboard.alert_rules import DEFAULTS, Rule, find_reason, read_rules
from asyncfed.dashboard.alerts import Alerts
from asyncfed.dashboard.run_folder import RunFolder
from asyncfed.dashboard.run_watch import RunWatch
from asyncfed.dashboard.webhook import Webhook
from asyncfed.store.process_lock import ProcessLock

from .conftest import small_run, write_header


@pytest.fixture
def running(tmp_path):
    """A run whose lock is held, so that it counts as running."""
    small_run(tmp_path / "run.sqlite")
    write_header(tmp_path / "run.sqlite", verdict="interrupted")
    lock = ProcessLock(tmp_path / "run.sqlite-lock")
    yield RunWatch(RunFolder(tmp_path))
    lock.release()


def test_an_alert_is_raised_once_and_again_after_it_was_over(running, monkeypatch):
    told = []
    alerts = Alerts(running, (Rule("disk_full", 0.05),), told.append)
    free = iter([0.5, 0.04, 0.03, 0.5, 0.01])
    monkeypatch.setattr("asyncfed.dashboard.alerts._free_disk", lambda view: next(free))
    for expected in (0, 1, 1, 1, 2):
        alerts.check()
        assert alerts.count == len(told) == expected
    assert told[0]["rule"] == "disk_full"
    assert told[0]["run"] == "run.sqlite"
    assert "4.0%" in told[0]["text"]
    assert alerts.since(1) == told[1:]
    assert alerts.since(2) == []


def test_no_update_for_long(running, monkeypatch):
    alerts = Alerts(running, (Rule("no_update", 600.0),))
    now = time.monotonic()
    alerts.check()
    monkeypatch.setattr(time, "monotonic", lambda: now + 599.0)
    alerts.check()
    assert not alerts.fired
    monkeypatch.setattr(time, "monotonic", lambda: now + 601.0)
    alerts.check()
    assert alerts.fired[0]["text"].startswith("No update was merged for 601 s")


def test_rising_loss(running):
    view = running.view("run.sqlite")
    rule = Rule("loss_rising", 3.0)
    for values, rises in (([5, 1, 2, 3, 4], True), ([1, 2, 3, 3, 4], False), ([1, 2, 3], False), ([], False)):
        view.metrics = lambda values=values: {"objective": np.array(values, float)}
        assert (find_reason(rule, view, 0.0, 1.0) is not None) == rises


def test_rules_from_a_file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text("no_update = 60\ndisk_full = false\n")
    assert read_rules(path) == (Rule("no_update", 60.0), *DEFAULTS[1:4])
    assert read_rules(None) == DEFAULTS
    for text, complaint in (("no_updates = 1", "Did you mean"), ("no_update = true", "positive"), ("x", "cannot be"),
                            ("no_update = -1", "positive")):  # fmt: skip
        path.write_text(text)
        with pytest.raises(ConfigError, match=complaint):
            read_rules(path)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Refuses the first attempt, redirects the second, accepts the third."""

    bodies: list
    answers = (500, 302, 200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.send_response(self.answers[min(len(self.bodies), 3) - 1])
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def test_the_webhook_tries_again_and_follows_no_redirect():
    Receiver.bodies = []
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hook = Webhook(f"http://127.0.0.1:{server.server_port}/hook", pauses=(0.01, 0.01))
    begun = time.monotonic()
    hook.send({"text": "<b>"})
    assert time.monotonic() - begun < 1.0
    while len(Receiver.bodies) < 3 and time.monotonic() - begun < 20:
        time.sleep(0.01)
    server.shutdown()
    server.server_close()
    assert Receiver.bodies == [("/hook", "application/json", {"text": "<b>"})] * 3


def test_a_webhook_that_does_not_answer_blocks_nobody():
    hook = Webhook("http://127.0.0.1:9/", pauses=())
    for _ in range(1000):
        hook.send({})


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "http://", "nonsense"])
def test_only_http(url):
    with pytest.raises(ConfigError, match="http"):
        Webhook(url)
