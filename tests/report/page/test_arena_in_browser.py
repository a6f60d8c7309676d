"""The arena's page in a real browser: it filters and sorts, shows a cell's TOML, fits a phone, never complains."""

import csv

import pytest

from asyncfed.arena.arena import plan_arena, run_arena
from asyncfed.arena.summary import summarise
from asyncfed.arena.written_cells import entry_toml
from asyncfed.report.page.arena_page import write_arena_page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arena")
    plan = plan_arena(["quadratic"], ["equal", "stragglers"], ["iid"], ["fedasync", "published"], seeds=2, trials=1)
    results = run_arena(plan, folder, 1)
    return results, write_arena_page(results, summarise(results), folder / "arena.html")


@pytest.fixture
def opened(open_study, made):
    return lambda *size: open_study(made[1], *size)


def names(page):
    return page.eval_on_selector_all("#ranking tbody th", "all => all.map(one => one.innerText)")


def test_it_filters_sorts_and_says_numbers(opened):
    page = opened()
    assert len(names(page)) == 3
    page.click("#ranking [data-sort=name]")
    assert names(page) == ["fedasync", "published", "sync"]
    page.click("text=stragglers >> nth=0")
    assert "1 of 2 cells" in page.inner_text("#count")
    page.hover("#heat tbody td[data-cell] >> nth=0")
    assert "in quadratic, stragglers, iid" in page.inner_text("#tip")
    page.click("#reset")
    assert "2 of 2 cells" in page.inner_text("#count")
    page.click("text=Energy >> nth=0")
    assert page.complaints == []


def test_the_rows_that_are_shown_are_downloaded(opened):
    page = opened()
    with page.expect_download() as download:
        page.click("#download")
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 6
    assert {row["strategy"] for row in rows} == {"fedasync", "published", "sync"}


def test_a_cell_can_be_run_by_what_is_shown(opened, made):
    page = opened()
    page.click("#cell-table [data-run] >> nth=0")
    shown = page.text_content("#run-text")
    assert shown in {entry_toml(entry) for entry in made[0].entries}
    page.click("#close")
    assert page.complaints == []


def test_it_fits_a_phone(opened):
    page = opened(390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.complaints == []
