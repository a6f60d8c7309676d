"""The page about runs."""

import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.report.page.run_page import RunDescription, write_run_page


def test_the_page_of_runs_names_each_and_gives_settings_and_digests(make_run, tmp_path, read_page):
    described = [RunDescription(make_run(), "seed = 4\nx = 1", "IID as far as can be seen", {"journal": "ab12"})] * 2
    seen = read_page(write_run_page(tmp_path, described, "asyncfed report a b").read_text())
    words = " ".join(seen.texts)
    assert "2 runs of made up" in seen.texts
    for part in ("afl (latest), seed 4 #2", "IID as far as can be seen", "seed = 4\nx = 1", "ab12", "3.6 kB"):
        assert part in words


@pytest.mark.slow
def test_a_run_that_was_stopped_before_its_first_round_has_a_page(make_run, tmp_path):
    run = make_run((9.0,), verdict="interrupted", reason="stopped")
    assert "interrupted" in write_run_page(tmp_path, [RunDescription(run, "", "", {})]).read_text()


def test_a_page_needs_a_run(tmp_path):
    with pytest.raises(ConfigError, match="no runs to report on"):
        write_run_page(tmp_path, [])


@pytest.mark.slow
def test_the_command_writes_the_page_of_a_run(cli, small, tmp_path, read_page):
    run = af.run(small(), out=tmp_path / "run.sqlite")
    digest = run.sha256["params"]
    run.journal.close()
    result = cli("report", tmp_path / "run.sqlite", "--out", tmp_path / "page.html")
    assert (result.code, result.err) == (0, "")
    seen = read_page((tmp_path / "page.html").read_text())
    assert digest in seen.texts
    assert small().measure_heterogeneity().verdict in seen.texts
    assert af.to_toml(small()).strip() in seen.texts


def rows_of(seen, title):
    """The texts from this title on."""
    return seen.texts[seen.texts.index(title) :]


@pytest.mark.slow
def test_clients_have_a_table_and_a_summary_of_their_own(make_run, made_clients, read_page, tmp_path):
    described = RunDescription(make_run(), "", "", {}, made_clients([0.5, 2.0]))
    seen = read_page(write_run_page(tmp_path, [described]).read_text())
    label = "made up, afl (latest), seed 4"
    assert "shop 1 (worst tenth)" in rows_of(seen, f"Clients of {label}")
    summary = rows_of(seen, f"Clients of {label}: summary")
    assert summary[1:3] == ["statistic", "value"]
    assert summary[summary.index("better off federated") + 1] == "0.5"
    assert "Loss of each client" in seen.texts


@pytest.mark.slow
def test_of_many_clients_there_is_only_the_summary(make_run, made_clients, read_page, tmp_path):
    described = RunDescription(make_run(), "", "", {}, made_clients(range(80)))
    seen = read_page(write_run_page(tmp_path, [described]).read_text())
    assert "Clients of made up, afl (latest), seed 4" not in seen.texts
    assert "Clients of made up, afl (latest), seed 4: summary" in seen.texts


def test_data_that_the_file_does_not_describe_are_not_described(cli, small, tmp_path, read_page, monkeypatch):
    monkeypatch.setattr("asyncfed.report.page.html_page._draw_png", lambda figure: b"")
    path, page, experiment = tmp_path / "run.sqlite", tmp_path / "page.html", small()
    other = af.replace(experiment, seed=7).problem()
    af.run(experiment, problem=other, out=path).journal.close()
    assert cli("report", path, "--out", page).code == 0
    seen = read_page(page.read_text())
    assert "a problem of your own, which the file does not hold" in seen.texts
    assert experiment.measure_heterogeneity().verdict not in seen.texts
    assert "Loss of each client" not in seen.texts
    shown = cli("show", path, "--clients")
    assert shown.code != 0
    assert "af.load(path, problem=...)" in shown.err
