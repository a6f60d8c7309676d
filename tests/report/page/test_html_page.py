"""The report page as text; `test_page_in_browser` opens it."""

import base64
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.report.page.html_page import write_page
from asyncfed.report.page.html_parts import mark, verdict_table
from asyncfed.report.page.run_page import RunDescription, write_run_page
from asyncfed.report.page.run_page_figures import run_figures


class Seen(HTMLParser):
    """Texts, elements with their attributes, and the data the page's script reads."""

    def __init__(self, page):
        super().__init__()
        self.texts, self.elements, self.inside, self.data = [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tag, attrs = self.inside[-1] if self.inside else ("", {})
        if attrs.get("id") == "figure-data":
            self.data = json.loads(data)
        elif tag not in ("script", "style") and data.strip():
            self.texts.append(data.strip())

    def of(self, tag, **wanted):
        return [a for t, a in self.elements if t == tag and all(a.get(k) == v for k, v in wanted.items())]


@pytest.fixture(scope="module")
def page(made_figures, made_verdicts, tmp_path_factory):
    settings = {"Seeds": [0, 1], "TOML": "a = 1\nb = '<'", "Versions": {"asyncfed": "0.1.0"}, "Runs": [{"sha": "ab12"}]}
    return write_page(tmp_path_factory.mktemp("page") / "out", "Judged <here>", made_verdicts, made_figures, settings)


@pytest.fixture(scope="module")
def seen(page):
    return Seen(page.read_text())


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


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_text_survives(words):
    verdict = {"id": words, "claim": words, "verdict": words, "reason": words}
    seen = Seen(verdict_table([verdict], []))
    assert {tag for tag, _ in seen.elements} == {"section", "h2", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert seen.of("tr")[1] == {"id": f"verdict-{words}"}


def test_a_verdict_is_told_by_more_than_its_colour():
    known = ["holds", "holds per round but not in time", "does not hold", "undecided"]
    symbols = [re.search(r'aria-hidden="true">(.)<', mark(word))[1] for word in known]
    assert len(set(symbols)) == 4


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


def test_a_picture_that_is_given_is_not_drawn_again(made_figures, tmp_path):
    pictures = {figure.name: b"PNG of " + figure.name.encode() for figure in made_figures}
    seen = Seen(write_page(tmp_path, "T", [], made_figures, {}, images=pictures).read_text())
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


# ---- the page of runs ------------------------------------------------------------------------------------------


def test_figures_of_runs_have_units_and_gaps_where_a_run_diverged(make_run):
    loss, staleness, participation = run_figures({"good": make_run(), "bad": make_run((9.0, 1e9, np.nan))})
    labels = [panel.x_label for panel in loss.panels]
    assert labels == ["rounds", "virtual time, s", "communication, down and up, kB", "energy of computing, J"]
    assert loss.panels[2].series[0].x == (0.0, 1.8, 3.6)
    assert loss.panels[0].series[1].y == (9.0, 1e9, None)
    assert staleness.panels[1].series[0].y == (3.0, 3.0)
    assert participation.panels[0].series[0].y == (0.0, 1.0, 2.0, 3.0)


def test_participation_of_many_clients_is_counted(make_run):
    (panel,) = run_figures({"many": make_run(num_clients=60)})[2].panels
    assert (panel.x_label, panel.y_label) == ("merged updates", "clients")
    assert sum(panel.series[0].y) == 60


def test_the_page_of_runs_names_each_and_gives_settings_and_digests(make_run, tmp_path):
    told = [RunDescription(make_run(), "seed = 4\nx = 1", "IID as far as can be told", {"journal": "ab12"})] * 2
    seen = Seen(write_run_page(tmp_path, told, "asyncfed report a b").read_text())
    words = " ".join(seen.texts)
    assert "2 runs of made up" in seen.texts
    for part in ("afl (latest), seed 4 #2", "IID as far as can be told", "seed = 4\nx = 1", "ab12", "3.6 kB"):
        assert part in words


def test_a_run_that_was_stopped_before_its_first_round_has_a_page(make_run, tmp_path):
    run = make_run((9.0,), verdict="interrupted", reason="stopped")
    assert "interrupted" in write_run_page(tmp_path, [RunDescription(run, "", "", {})]).read_text()


def test_a_page_needs_a_run(tmp_path):
    with pytest.raises(ConfigError, match="no runs to report on"):
        write_run_page(tmp_path, [])


def test_the_command_writes_the_page_of_a_run(cli, small, tmp_path):
    run = af.run(small(), out=tmp_path / "run.sqlite")
    digest = run.sha256["params"]
    run.journal.close()
    result = cli("report", tmp_path / "run.sqlite", "--out", tmp_path / "page.html")
    assert (result.code, result.err) == (0, "")
    seen = Seen((tmp_path / "page.html").read_text())
    assert digest in seen.texts
    assert small().measure_heterogeneity().verdict in seen.texts
    assert af.to_toml(small()).strip() in seen.texts
