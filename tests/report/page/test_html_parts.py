"""The parts of a page as HTML."""

import re

from hypothesis import given
from hypothesis import strategies as st

from asyncfed.report.page.html_parts import mark, titled_table, verdict_table


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_text_survives(read_page, words):
    verdict = {"id": words, "claim": words, "verdict": words, "reason": words}
    seen = read_page(verdict_table([verdict], []))
    assert {tag for tag, _ in seen.elements} == {"section", "h2", "table", "thead", "tbody", "tr", "th", "td", "span"}
    assert seen.of("tr")[1] == {"id": f"verdict-{words}"}


def test_a_verdict_has_a_symbol_besides_its_colour():
    known = ["holds", "holds per round but not in time", "does not hold", "undecided"]
    symbols = [re.search(r'aria-hidden="true">(.)<', mark(word))[1] for word in known]
    assert len(set(symbols)) == 4


def test_a_table_of_more_than_twelve_rows_is_folded():
    rows = [{"client": number} for number in range(13)]
    assert "<details><summary>13 rows</summary><table" in titled_table("Clients", rows)
    assert "<details>" not in titled_table("Clients", rows[:12])
