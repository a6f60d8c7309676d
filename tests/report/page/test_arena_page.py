"""The arena's page: one file, nothing fetched, every row inside."""

import json
import re

import pytest

from asyncfed.arena.arena import plan_arena, run_arena
from asyncfed.arena.summary import summarise
from asyncfed.arena.written_cells import entry_toml
from asyncfed.report.page.arena_page import page_data, write_arena_page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arena")
    plan = plan_arena(["quadratic"], ["stragglers"], ["iid"], ["fedasync", "published"], seeds=2, trials=1)
    results = run_arena(plan, folder, 1)
    rows = summarise(results)
    return results, rows, write_arena_page(results, rows, folder / "arena.html").read_text()


def test_nothing_is_fetched(made):
    page = made[2]
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in page


def test_every_row_is_inside_and_the_tables_of_its_cell_and_strategy_are_its_toml(made):
    results, rows, page = made
    data = json.loads(re.search(r'id="arena-data">(.*?)</script>', page, re.S).group(1))
    assert len(data["rows"]) == len(rows)
    assert data == json.loads(json.dumps(page_data(results, rows)))
    for row, shown in zip(rows, data["rows"], strict=True):
        own = data["texts"][shown[7]].replace("@RATE@", repr(shown[5])).replace("@STEPS@", str(shown[6]))
        assert data["texts"][data["cells"][shown[0]]["toml"]] + "\n" + own == entry_toml(row.entry)


def test_without_scripts_the_ranking_is_there(read_page, made):
    texts = read_page(made[2]).texts
    assert "fedasync" in texts
    assert "mean rank" in texts
