"""The pages while a run goes on, in every size and theme; and with a run that is large."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import asyncfed as af

from .pages import MODES, check_look, dashboard_process, open_run, opened
from .test_serve import children, serving, wait_until

TROUBLED_RUN = Path(__file__).with_name("troubled_run.py")
CULPRIT = 2


def limit(seconds):
    """What is asked for on a machine with nothing else to do; ten times as long on one that is busy."""
    return seconds if os.getloadavg()[0] < os.cpu_count() else 10 * seconds


class Stopwatch:
    def __enter__(self):
        self.begin = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.begin


@pytest.fixture
def troubled_run(tmp_path):
    """A live run of five clients that begins when it is called; gives its path, its process, and the file that spoils
    client 2."""
    started = []

    def start():
        path, flag = tmp_path / "ward.sqlite", tmp_path / "spoil"
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([sys.executable, str(TROUBLED_RUN), str(path), str(flag)], **silent)
        started.append(process)
        wait_until(path.exists)
        return path, process, flag

    yield start
    for process in started:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def count_updates(page):
    tile = page.locator(".tile", has_text="Updates merged").locator("dd").first
    return int(tile.inner_text().replace(",", ""))


def curve(page):
    return page.locator(".charts path.line").first.get_attribute("d")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_a_live_run_appears_and_grows_a_killed_client_and_an_excluded_one_are_seen(browser, tmp_path, troubled_run):
    with dashboard_process(tmp_path) as (address, _), ExitStack() as stack:
        pages = [stack.enter_context(opened(browser, address, *mode)) for mode in MODES]
        for page in pages:
            page.wait_for_selector("text=No runs here yet")
        path, process, flag = troubled_run()
        with Stopwatch() as appearing:
            for page in pages:
                page.wait_for_selector(f"text={path.name}")
        assert appearing.seconds < limit(2)

        for page in pages:
            page.wait_for_selector(".spark polyline", timeout=300_000)  # measured, after kernels were compiled
            open_run(page, path.name)
            page.wait_for_selector(".charts path.line")
        before = [(count_updates(page), curve(page), page.locator(".lane-foot .figure").inner_text()) for page in pages]
        for page, (updates, line, lanes) in zip(pages, before, strict=True):
            wait_until(lambda page=page, updates=updates: count_updates(page) > updates)
            wait_until(lambda page=page, line=line: curve(page) != line)
            page.locator(".lanes-panel").scroll_into_view_if_needed()
            wait_until(lambda page=page, lanes=lanes: page.locator(".lane-foot .figure").inner_text() != lanes)
            assert not page.locator(".band").is_visible()

        workers = sorted(worker for child in children(process.pid) for worker in (child, *children(child)))
        os.kill(workers[-1], signal.SIGKILL)  # the client that was started last
        with Stopwatch() as noticing:
            for page in pages:
                page.wait_for_selector(".lane-state[data-state=left]")
        assert noticing.seconds < limit(5)

        flag.touch()
        for page in pages:
            page.wait_for_selector(".band[data-level=alarm]")
            page.wait_for_selector(f".lane-name[data-client='{CULPRIT}'] .lane-state[data-state='set aside']")
            assert "set aside for its faults" in page.locator(".band").inner_text()
            assert page.locator("#attention").is_visible()  # also far down the page
            page.click("#attention")
            wait_until(lambda page=page: page.evaluate("() => window.scrollY") == 0)
            check_look(page)
        print(f"\nappeared in {appearing.seconds:.2f} s, kill seen in {noticing.seconds:.2f} s, on four pages")


LONG_TASKS = """
window.longTasks = [];
new PerformanceObserver((list) => { for (const task of list.getEntries()) window.longTasks.push(task.duration); })
  .observe({ type: "longtask", buffered: true });
"""


@pytest.mark.slow
def test_ten_thousand_clients_are_drawn_at_once_and_scroll_without_a_pause(browser, tmp_path):
    experiment = af.presets.regression(strategy="fedasync", num_clients=10_000, rounds=10**6)
    experiment = af.replace(
        experiment,
        data=af.replace(experiment.data, num_samples=20_000),
        budget=af.Budget(updates=60_000),
        strategy=af.replace(experiment.strategy, concurrency=2_000),
        evaluation=af.replace(experiment.evaluation, distance=False),
    )
    af.run(experiment, out=tmp_path / "large.sqlite").journal.close()
    with serving(tmp_path) as client, opened(browser, str(client.base_url).rstrip("/")) as page:
        page.add_init_script(LONG_TASKS)
        page.reload()
        with Stopwatch() as opening:
            open_run(page, "large.sqlite")
        assert opening.seconds < limit(2)
        page.evaluate("() => document.querySelector('.lanes-panel').scrollIntoView({ block: 'center' })")
        box = page.locator(".lane-canvas").bounding_box()
        page.mouse.move(box["x"] + 300, box["y"] + 100)
        page.evaluate("() => { window.longTasks.length = 0; }")
        for _ in range(20):
            page.mouse.wheel(0, 2000)
            page.wait_for_timeout(30)
        page.keyboard.down("Control")
        for turn in (-60, 60):
            for _ in range(15):
                page.mouse.wheel(0, turn)
                page.wait_for_timeout(30)
        page.keyboard.up("Control")
        page.keyboard.press("Escape")
        longest = max(page.evaluate("() => window.longTasks"), default=0.0)
        assert longest < 1000 * limit(0.1)
        assert page.locator(".lane-name").count() < 40  # only rows that are seen are there
        page.focus(".lane-scroller")
        page.keyboard.press("End")
        wait_until(lambda: "…" not in page.locator(".lane-label").all_inner_texts())
        assert page.complaints == []
        print(f"\n10,000 clients: all panels after {opening.seconds:.2f} s, longest task {longest:.0f} ms")
