"""The page of the robustness study: one file, nothing fetched, every cell inside."""

import json
import re

import pytest

from asyncfed.report.page.robustness_page import page_data, write_robustness_page
from asyncfed.robustness.scenarios import HONEST
from asyncfed.robustness.study import plan_study, run_study
from asyncfed.robustness.summary import summarise
from asyncfed.robustness.written_cells import cell_toml


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("robustness")
    plan = plan_study(["regression"], ["sign_flip"], ["median"], [0.3], ["iid"], ["stragglers"], seeds=2, quick=True)
    results = run_study(plan, folder, 1)
    rows = summarise(results)
    return results, rows, write_robustness_page(results, rows, folder / "robustness.html").read_text()


def test_nothing_is_fetched(made):
    page = made[2]
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", page)
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in page


def test_every_cell_is_inside_and_its_parts_are_its_toml(made):
    results, rows, page = made
    data = json.loads(re.search(r'id="study-data">(.*?)</script>', page, re.S).group(1))
    assert data == json.loads(json.dumps(page_data(results, rows)))
    assert len(data["rows"]) == len(rows)
    for row, shown in zip(rows, data["rows"], strict=True):
        scenario = data["scenarios"][shown[0]]
        texts = [data["texts"][scenario["toml"]], data["texts"][scenario["strategies"][shown[1]]]]
        if row.cell.attack != HONEST:
            texts.append(data["attacks"][shown[2]]["toml"].replace("@SHARE@", str(shown[3])))
        assert "\n".join(texts) == cell_toml(row.cell, results.plan.seeds[0])


def test_without_scripts_the_findings_are_there(read_page, made):
    texts = " ".join(read_page(made[2]).texts)
    assert "sign flip by 30 % of the clients" in texts
    assert "quick study" in texts


def test_break_points_and_costs_are_inside(made):
    data = page_data(made[0], made[1])
    assert [one[1:3] for one in data["breaks"]] == [[0, 0], [1, 0]]
    assert [one[1] for one in data["costs"]] == [0, 1]
