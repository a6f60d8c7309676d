"""The page as a whole; `test_page_in_browser` opens it."""

import base64
import sys

import numpy as np
import pytest

from asyncfed.core.errors import ConfigError
from asyncfed.report.page.html_page import write_page


@pytest.fixture(scope="module")
def page(made_figures, made_verdicts, tmp_path_factory):
    settings = {"Seeds": [0, 1], "TOML": "a = 1\nb = '<'", "Versions": {"asyncfed": "0.1.0"}, "Runs": [{"sha": "ab12"}]}
    return write_page(tmp_path_factory.mktemp("page") / "out", "Judged <here>", made_verdicts, made_figures, settings)


@pytest.fixture(scope="module")
def seen(page, read_page):
    return read_page(page.read_text())


@pytest.mark.slow
def test_the_page_lies_where_it_was_asked_for(page, tmp_path):
    assert page.parts[-2:] == ("out", "report.html")
    assert write_page(tmp_path / "a" / "b.html", "T", [], [], {}) == tmp_path / "a" / "b.html"


def test_nothing_is_fetched(seen):
    fetching = {"src", "href", "srcset", "action", "data"}
    addresses = [value for _, attrs in seen.elements for name, value in attrs.items() if name in fetching]
    assert all(value.startswith(("#", "data:")) for value in addresses), addresses
    (policy,) = seen.of("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"].startswith("default-src 'none'")


def test_verdicts_come_first_with_number_words_and_link(seen):
    words = " ".join(seen.texts)
    for part in ("Higher fractions converge faster", "0.213 (0.19 to 0.24) times", "reading: text", "undecided"):
        assert part in words
    assert words.index("Verdicts") < words.index("Loss by client fraction")
    assert {"href": "#figure-fractions"} in seen.of("a")
    assert seen.texts.count("None") == 3  # the buttons of three figures, and no missing number


def test_texts_are_shown_and_not_run(seen):
    assert "Judged <here>" in seen.texts
    assert any("<script>alert(1)</script>" in text for text in seen.texts)
    assert len(seen.of("script")) == 3


def test_every_figure_has_its_plots_picture_buttons_and_rerun(seen, made_figures):
    assert [a["id"] for a in seen.of("section", **{"class": "figure"})] == [f"figure-{f.name}" for f in made_figures]
    assert len(seen.of("div", **{"class": "plot"})) == sum(len(f.panels) for f in made_figures)
    pictures = seen.of("img", **{"class": "static"})
    assert len(pictures) == 3
    assert all(a["src"].startswith("data:image/png;base64,") and a["alt"] for a in pictures)
    assert len(seen.of("button", **{"class": "series"})) == 10 + 4 + 4
    assert [a["data-group"] for a in seen.of("button", **{"data-set": "group"})] == ["text", "scripts"]
    assert "asyncfed reproduce --only fractions" in seen.texts


def test_the_data_are_those_of_the_figures_to_six_digits(seen, made_figures):
    for shown, figure in zip(seen.data, made_figures, strict=True):
        for panel, drawn in zip(figure.panels, shown["panels"], strict=True):
            for series, line in zip(panel.series, drawn["series"], strict=True):
                assert shown["legend"][line["key"]]["label"] == series.label
                np.testing.assert_allclose(np.array(line["y"], float), np.array(series.y, float), rtol=1e-5)
                assert len(line["low"]) == len(series.low)


def test_a_picture_that_is_given_is_not_drawn_again(made_figures, tmp_path, read_page):
    pictures = {figure.name: b"PNG of " + figure.name.encode() for figure in made_figures}
    seen = read_page(write_page(tmp_path, "T", [], made_figures, {}, images=pictures).read_text())
    shown = [base64.b64decode(a["src"].partition(",")[2]) for a in seen.of("img")]
    assert shown == list(pictures.values())


def test_settings_can_be_opened(seen):
    assert len(seen.of("details")) == 4
    assert {"0, 1", "ab12", "a = 1\nb = '<'"} <= set(seen.texts)


def test_without_plotly_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ConfigError, match=r'pip install "asyncfed\[report\]"'):
        write_page(tmp_path, "T", [], [], {})


def test_a_verdict_about_a_missing_figure_is_refused(made_verdicts, tmp_path):
    with pytest.raises(ConfigError, match=r"figures that are not on the page: fractions"):
        write_page(tmp_path, "T", made_verdicts, [], {})


def test_two_figures_of_one_name_are_refused(made_figures, tmp_path):
    with pytest.raises(ConfigError, match="two figures are called others"):
        write_page(tmp_path, "T", [], [made_figures[2], made_figures[2]], {})


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file.report.html cannot be written .*Choose another place"):
        write_page(tmp_path / "file", "T", [], [], {})
