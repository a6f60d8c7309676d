"""The page of the communication study: claims, ratios, figures and settings in one file."""

import pytest

from asyncfed.report.figures.communication_figures import study_figures
from asyncfed.report.page.communication_page import ratio_tables, write_communication_page


@pytest.fixture(scope="module")
def page_path(communication_study, tmp_path_factory):
    results, rows = communication_study
    return write_communication_page(results, rows, study_figures(rows), tmp_path_factory.mktemp("page"))


def test_ratios_are_by_codec_and_strategy(communication_study):
    tables = ratio_tables(communication_study[1])
    assert len(tables) == 5
    title, table = next(iter(tables.items()))
    assert title == "regression: times fewer bytes up to the target than sending everything"
    assert [line["codec"] for line in table] == ["none", "top k", "top k ef"]
    assert table[1]["fedbuff"] == "never, 5 % left"
    assert table[2]["afl"].startswith("50 (50")
    assert sum("on 1 Mbit/s up" in title for title in tables) == 1


def test_claims_and_settings_are_on_the_page(page_path, read_page):
    page = read_page(page_path.read_text(encoding="utf-8"))
    text = " ".join(page.texts)
    assert "Communication study" in text
    assert "regression: top-k 1 % without error feedback stalls above the target" in text
    assert "tuned for every strategy and codec alike" in text
    assert [figure["name"] for figure in page.data] == ["regression_costs", "regression_links", "regression_strategies"]
    assert "[strategy]" in text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1280, "dark"), (1280, "light")])
def test_it_fits_a_phone_and_a_screen_in_light_and_dark(page_path, open_study, width, scheme):
    page = open_study(page_path, width, 900, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.complaints == []
