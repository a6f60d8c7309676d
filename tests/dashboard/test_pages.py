"""The pages in a browser, with runs that are over; and what their files may not contain."""

import re
import time

import pytest

import asyncfed as af
from asyncfed.dashboard.access import Access
from asyncfed.dashboard.jobs import EXPORTS
from asyncfed.dashboard.lanes import CODES
from asyncfed.dashboard.snapshot import make_snapshot
from asyncfed.dashboard.web_app import ASSETS
from asyncfed.report.figures.colours import LINE_COLOURS, LINE_DASHES

from .conftest import NAMES, TOKEN, small_run
from .pages import MODES, check_look, dashboard_process, open_run, opened
from .test_serve import serving, wait_until

RUN = "named.sqlite"


def asset(name):
    return (ASSETS / name).read_text()


def modules():
    return {path.name: path.read_text() for path in ASSETS.glob("*.js")}


@pytest.fixture(scope="module")
def address(runs):
    with serving(runs) as client:
        yield str(client.base_url).rstrip("/")


def test_lines_have_the_colours_and_dashes_of_the_figures():
    colours = re.search(r"LINE_COLOURS = \[(.*?)\];", asset("colours.js"))[1]
    assert re.findall(r"#\w{6}", colours) == list(LINE_COLOURS)
    dashes = re.search(r"LINE_DASHES = \[(.*)\];", asset("colours.js"))[1]
    found = [tuple(map(float, part.split(","))) if part else () for part in re.findall(r"\[([^\]]*)\]", dashes)]
    assert found == list(LINE_DASHES)
    light = re.findall(r"--series-\d: light-dark\((#\w{6}),", asset("dashboard.css"))
    assert [colour.lower() for colour in light] == [colour.lower() for colour in LINE_COLOURS]


def test_every_part_of_a_lane_has_a_style():
    parts = re.search(r"LANE_PARTS = \{(.*?)\n\};", asset("lane_style.js"), re.DOTALL)[1]
    assert set(re.findall(r'^  "?([\w ]+?)"?: \{', parts, re.MULTILINE)) == set(CODES)


def test_strategies_and_formats_that_are_offered_exist():
    offered = re.search(r"WHAT_IF_STRATEGIES = \[(.*?)\]", asset("jobs_panel.js"), re.DOTALL)[1]
    for name in re.findall(r'"(\w+)"', offered):
        af.presets.regression(strategy=name)
    formats = re.search(r"FORMATS = \[(.*?)\n\];", asset("jobs_panel.js"), re.DOTALL)[1]
    assert set(re.findall(r'\["([\w.]+)", "', formats)) == set(EXPORTS)


def test_no_file_makes_elements_of_texts_or_names_another_server():
    unsafe = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "http:", "https:")
    for name, text in modules().items():
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert not [word for word in unsafe if word in text], name
    assert not re.search(r"<style|style=|<script(?! type=\"module\" src=)|\son\w+=", asset("index.html"))
    assert "http" not in asset("dashboard.css") + asset("panels.css")


def test_modules_import_only_what_there_is():
    known = modules()
    for name, text in known.items():
        for names, source in re.findall(r'import \{([^}]*)\} from "\./([\w.]+)"', text):
            for imported in filter(None, map(str.strip, names.split(","))):
                exported = rf"export (async )?(function|const|class) {imported}\b"
                assert re.search(exported, known[source]), f"{name} imports {imported}"
                assert len(re.findall(rf"\b{imported}\b", text)) > 1, f"{name} does not use {imported}"


@pytest.mark.parametrize(("size", "theme"), MODES)
def test_every_page_in_every_size_and_theme(browser, address, size, theme):
    with opened(browser, address, size, theme) as page:
        page.wait_for_selector("text=plain run.sqlite")
        check_look(page)
        open_run(page, RUN)
        page.wait_for_selector(f"text={NAMES[0]}")
        assert page.locator(".tile").count() >= 6
        assert page.locator(".charts path.line").count() >= 2
        check_look(page)
        open_run(page, RUN, "/client/0")
        assert page.locator("h1").inner_text() == NAMES[0]
        check_look(page)
        page.evaluate(f"() => {{ location.hash = '#/compare/{RUN},other~2Fplain~20run.sqlite'; }}")
        page.wait_for_selector(".compare-key a >> nth=1")
        assert page.locator(".chart path.line").count() == 8  # two runs on four axes
        check_look(page)


def test_runs_are_found_chosen_and_compared(browser, address):
    with opened(browser, address) as page:
        page.wait_for_selector("tbody tr >> nth=1")
        page.fill("input[type=search]", "plain")
        assert page.locator("tbody tr").count() == 1
        page.fill("input[type=search]", "no such run")
        page.wait_for_selector("text=No run matches")
        page.fill("input[type=search]", "")
        page.locator("select").select_option("fedbuff")
        assert page.locator("tbody tr").count() == 1
        page.locator("select").select_option("")
        for box in page.locator("tbody input").all():
            box.check()
        page.click("text=Compare >> visible=true")
        page.wait_for_selector("text=Compare 2 runs")


def test_curves_change_their_axis_and_scale(browser, address):
    with opened(browser, address) as page:
        open_run(page, RUN)
        chart = page.locator(".charts svg").first
        for axis in ("Time", "Bytes", "Energy", "Rounds"):
            page.locator(".choice button", has_text=axis).first.click()
            named = {"Bytes": "bytes sent"}.get(axis, axis.lower())
            assert chart.get_attribute("aria-label") == f"Loss against {named}"
        before = page.locator(".charts path.line").first.get_attribute("d")
        page.locator(".choice button", has_text="Linear").click()
        assert page.locator(".charts path.line").first.get_attribute("d") != before
        box = chart.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
        assert "(rounds)" in page.locator(".charts .tip").first.inner_text()


def test_lanes_zoom_with_mouse_wheel_and_keys_and_open_a_client(browser, address):
    with opened(browser, address) as page:
        open_run(page, RUN)
        shown = page.locator(".lane-foot .figure")
        whole = shown.inner_text()
        page.locator(".lane-scroller").scroll_into_view_if_needed()
        box = page.locator(".lane-canvas").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + 60
        page.mouse.move(x, y)
        assert page.locator(".lane-tip").is_visible()
        page.mouse.down()
        page.mouse.move(x + 100, y, steps=4)
        page.mouse.up()
        wait_until(lambda: shown.inner_text() != whole)
        page.click("text=Whole run")
        wait_until(lambda: shown.inner_text() == whole)
        page.mouse.move(x, y)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -100)
        page.keyboard.up("Control")
        wait_until(lambda: shown.inner_text() != whole)
        page.focus(".lane-scroller")
        page.keyboard.press("0")
        wait_until(lambda: shown.inner_text() == whole)
        page.keyboard.press("+")
        wait_until(lambda: shown.inner_text() != whole)
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        spoken = page.locator(".spoken").inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Its last tickets")
        assert spoken.startswith(page.locator("h1").inner_text())
        assert page.complaints == []


def test_a_theme_that_was_chosen_stays(browser, address):
    with opened(browser, address) as page:
        paper = lambda: page.evaluate("() => getComputedStyle(document.body).backgroundColor")  # noqa: E731
        light = paper()
        page.click("#theme-button")  # light
        page.click("#theme-button")  # dark
        dark = paper()
        assert dark != light
        page.reload()
        assert paper() == dark


def test_a_link_of_a_site_shows_that_site_alone(browser, address):
    token = Access(token=TOKEN).site_token(RUN, 1)
    with opened(browser, address, token=token) as page:
        page.wait_for_selector(f"main[data-drawn='{RUN}']")
        page.wait_for_selector(f"text={NAMES[1]}")
        text = page.locator("body").inner_text()
        assert not [name for name in (NAMES[0], *NAMES[2:]) if name in text]
        assert "Clients\n" not in text
        check_look(page)
        page.locator(".lane-name").click()
        page.wait_for_selector("text=Its last tickets")
        assert page.locator("h1").inner_text() == NAMES[1]
        assert not page.locator("text=Link for this site").is_visible()
        check_look(page)


def test_an_export_is_made_and_a_link_for_a_site(browser, address):
    with opened(browser, address) as page:
        open_run(page, RUN)
        page.locator(".job button", has_text="Export").click()
        page.wait_for_selector("text=Open the result")
        with page.expect_download() as download:
            page.click("text=Open the result")
        assert download.value.suggested_filename == "evaluations.csv"
        open_run(page, RUN, "/client/1")
        page.click("text=Link for this site")
        link = page.locator(".site-link input").input_value()
        assert link == f"{address}/?token={Access(token=TOKEN).site_token(RUN, 1)}"
        assert page.complaints == []


def test_a_saved_page_needs_no_server(browser, runs, tmp_path):
    path = tmp_path / "saved.html"
    path.write_text(make_snapshot(runs, ASSETS, time.time()))
    page = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True).new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector("text=plain run.sqlite")
    open_run(page, RUN)
    page.wait_for_selector(f"text={NAMES[0]}")
    page.locator(".lanes-panel select").select_option("number")
    wait_until(lambda: page.locator(".lane-label").all_inner_texts() == NAMES)
    open_run(page, RUN, "/client/3")
    assert page.locator("h1").inner_text() == NAMES[3]
    assert page.locator(".lane-label").all_inner_texts() == [NAMES[3]]
    assert said == []
    page.context.close()


def test_an_empty_folder_says_what_to_do_and_a_run_appears_by_itself(browser, tmp_path):
    with serving(tmp_path) as client, opened(browser, str(client.base_url).rstrip("/")) as page:
        page.wait_for_selector("text=No runs here yet")
        page.wait_for_selector("text=Live")
        small_run(tmp_path / "new.sqlite", rounds=3)
        page.wait_for_selector("text=new.sqlite")
        (tmp_path / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + b"?" * 5000)
        page.wait_for_selector("tr[data-state=unreadable]")
        check_look(page)
        page.evaluate("() => { location.hash = '#/run/no-such-run'; }")
        page.wait_for_selector("text=There is no run")


def test_a_server_that_is_gone_is_said_to_be_gone(browser, tmp_path):
    with dashboard_process(tmp_path) as (address, server), opened(browser, address) as page:
        page.wait_for_selector("text=Live")
        server.kill()
        server.wait()
        page.wait_for_selector("text=Reconnecting")
