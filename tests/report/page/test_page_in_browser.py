"""The report page in a real browser: everything is drawn, buttons work, nothing is fetched, it fits a phone."""

import csv

import pytest

from asyncfed.report.page.html_page import write_page

pytestmark = pytest.mark.slow

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def file(made_figures, made_verdicts, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("page"), "Judged", made_verdicts, made_figures, {"Digest": "ab12" * 40})


@pytest.fixture
def opened(browser, file):
    """Opens the page; `complaints` and `requests` hold what the browser said and asked for."""

    def open_page(viewport=DESK, **context):
        page = browser.new_context(viewport=viewport, **context).new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda said: page.complaints.append(said.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.route("**/*", lambda route: _only_the_page(page, route))
        page.goto(file.as_uri())
        if context.get("java_script_enabled", True):
            page.wait_for_selector("body[data-drawn=all]", timeout=30_000)
        return page

    return open_page


def _only_the_page(page, route):
    if route.request.url.startswith(("file:", "data:", "blob:")):
        route.continue_()
    else:
        page.requests.append(route.request.url)
        route.abort()


def visible(page, figure):
    """How many traces each plot of a figure shows."""
    return page.evaluate(
        "name => [...document.querySelectorAll(`#figure-${name} .plot`)]"
        ".map(plot => plot.data.filter(trace => trace.visible !== false).length)",
        figure,
    )


def test_everything_is_drawn_without_a_complaint_or_a_request(opened, made_figures, made_verdicts):
    page = opened()
    drawn = page.evaluate(
        "[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.main-svg .trace').length)"
    )
    assert len(drawn) == sum(len(figure.panels) for figure in made_figures)
    assert all(count > 0 for count in drawn), drawn
    assert page.locator(".verdicts tbody tr").count() == len(made_verdicts)
    assert (page.complaints, page.requests) == ([], [])
    assert "Share" not in " ".join(
        page.evaluate("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    )


def test_buttons_switch_series_off_and_on_in_every_panel(opened):
    page = opened()
    buttons = page.locator("#figure-readings .buttons")
    assert visible(page, "readings") == [8, 4]  # four lines and four bands; two and two
    buttons.get_by_text("AFL (text)").click()
    assert visible(page, "readings") == [6, 2]
    buttons.get_by_text("None", exact=True).click()
    assert visible(page, "readings") == [0, 0]
    buttons.get_by_text("scripts", exact=True).click()
    assert visible(page, "readings") == [4, 0]
    buttons.get_by_text("All", exact=True).click()
    assert visible(page, "readings") == [8, 4]
    assert visible(page, "fractions") == [20]


def test_a_keyboard_reaches_the_buttons_and_hears_their_state(opened):
    page = opened()
    button = page.locator("#figure-fractions .series").first
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert visible(page, "fractions") == [18]


def test_hovering_tells_the_value_its_unit_and_the_band(opened):
    page = opened()
    page.locator("#figure-others").scroll_into_view_if_needed()
    bar = page.locator("#figure-others .plot").first.locator(".bars .point").first
    bar.hover(force=True)  # a plot catches the pointer above its bars
    shown = page.locator("#figure-others .hoverlayer .hovertext").first.text_content()
    for part in ("AFL", "client: 0", "updates: 3", "band: 2 to 4"):
        assert part in shown


def test_the_data_of_a_figure_can_be_downloaded(opened, made_figures, tmp_path):
    page = opened()
    with page.expect_download() as waiting:
        page.locator("#figure-others .download").click()
    assert waiting.value.suggested_filename == "others.csv"
    waiting.value.save_as(tmp_path / "others.csv")
    with (tmp_path / "others.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(series.x) for panel in made_figures[2].panels for series in panel.series)
    assert rows[0] | {"low": "2", "high": "4"} == rows[0]
    assert [row["y"] for row in rows if row["label"] == "gaps"] == ["3", "", "2", "1"]


@pytest.mark.parametrize("open_details", [False, True])
def test_it_fits_a_phone(opened, open_details):
    page = opened(PHONE, has_touch=True, is_mobile=True)
    if open_details:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate("Math.max(...[...document.querySelectorAll('.plot')].map(p => p.offsetWidth))") <= 390


def test_print_shows_pictures_instead_of_plots(opened):
    page = opened()
    page.emulate_media(media="print")
    assert page.locator("img.static").first.is_visible()
    assert not page.locator(".plot").first.is_visible()
    assert not page.locator(".buttons").first.is_visible()


def test_without_scripts_the_pictures_are_shown(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("img.static").first.is_visible()
    assert not page.locator(".plot").first.is_visible()


CONTRASTS = """() => {
  const light = (text) => text.match(/\\w\\w/g).map((part) => (parseInt(part, 16) / 255) ** 2.2)
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const long = (text) => (text.length === 4 ? "#" + [...text.slice(1)].map((c) => c + c).join("") : text);
  return [...document.querySelectorAll(".plot")].flatMap((plot) => {
    const paper = light(long(plot.layout.paper_bgcolor));
    const lines = plot.data.filter((trace) => !trace.fillcolor).map((trace) => trace.marker?.color ?? trace.line.color);
    return [plot.layout.font.color, ...lines]
      .map((colour) => contrast(light(long(colour)), paper));
  });
}"""


def test_figures_follow_the_readers_colour_scheme(opened):
    page = opened(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()")
    papers = "[...new Set([...document.querySelectorAll('.plot')].map((plot) => plot.layout.paper_bgcolor))]"
    assert page.evaluate(papers) == [dark]
    assert min(page.evaluate(CONTRASTS)) > 4.0
    page.emulate_media(color_scheme="light")
    page.wait_for_function("() => document.querySelector('.plot').layout.paper_bgcolor === '#fff'")
    assert page.complaints == []
