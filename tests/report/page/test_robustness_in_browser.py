"""The robustness study's page in a real browser: it filters, shows a cell's TOML, fits a phone, never complains."""

import csv

import pytest

from asyncfed.report.page.robustness_page import write_robustness_page
from asyncfed.robustness.study import plan_study, run_study
from asyncfed.robustness.summary import summarise
from asyncfed.robustness.written_cells import cell_toml

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("robustness")
    plan = plan_study(["regression", "svm"], ["sign_flip"], ["median"], [0.1, 0.3], ["iid"], ["stragglers"], seeds=2)
    results = run_study(plan, folder, 1)
    return results, write_robustness_page(results, summarise(results), folder / "robustness.html")


@pytest.fixture
def opened(open_study, made):
    return lambda *size, **context: open_study(made[1], *size, **context)


def texts(page, where):
    return page.eval_on_selector_all(where, "all => all.map(one => one.innerText)")


def test_a_cell_says_in_words_and_colour_whether_it_holds(opened):
    page = opened()
    assert texts(page, "#matrix tbody th") == ["nobody lies", "sign flip"]
    assert all(text[0] in "✓✗" for text in texts(page, "#matrix td button"))
    colours = page.eval_on_selector_all(
        "#matrix td button", "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(colours)) > 1
    assert "30 % of the clients lie. They sent" in page.inner_text("#updates")
    assert page.complaints == []


def test_filters_choose_a_scenario_and_a_share(opened):
    page = opened()
    before = texts(page, "#matrix td button")
    page.click("[data-filter=problem] >> text=svm")
    assert texts(page, "#matrix td button") != before
    page.click("[data-filter=share] >> text=10 %")
    assert "10 % of the clients lie" in page.inner_text("#updates")
    assert "10 % of the clients" in page.inner_text("#sentences")
    assert len(texts(page, "#breaks tbody tr")) == 2
    assert len(texts(page, "#costs tbody tr")) == 2
    assert page.complaints == []


def test_a_cell_can_be_run_by_what_is_shown(opened, made):
    page = opened()
    page.click("#matrix [data-row] >> nth=-1")
    assert page.text_content("#run-text") in {cell_toml(one.cell, 1) for one in made[0].cells}
    assert "liars sent" in page.inner_text("#run-numbers")
    page.click("#close")
    assert page.complaints == []


def test_the_rows_that_are_shown_are_downloaded(opened):
    page = opened()
    with page.expect_download() as download:
        page.click("#download")
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    assert {(row["defence"], row["share"]) for row in rows} == {
        *(("fedbuff", "0"), ("fedbuff", "0.3"), ("median", "0"), ("median", "0.3")),
    }


def test_it_fits_a_phone_and_the_dark(opened):
    page = opened(390, 844, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.complaints == []
