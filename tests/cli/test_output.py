"""What commands print with."""

from types import SimpleNamespace

import pytest
import typer
from matplotlib.figure import Figure

from asyncfed.cli.output import exit_by_verdict, print_line, save_figure
from asyncfed.core.errors import ConfigError


def test_a_line_is_printed_as_it_is(capsys):
    text = "[red]" + "long " * 60
    print_line(text)
    assert capsys.readouterr().out == text + "\n"


@pytest.mark.parametrize(
    ("verdict", "code", "words"),
    [("interrupted", 130, "`asyncfed resume run.sqlite` continues"), ("diverged", 1, "the norm is nan. Try less.")],
)
def test_a_run_that_did_not_end_well_decides_the_exit_code(capsys, verdict, code, words):
    finished = verdict != "interrupted"
    run = SimpleNamespace(
        writer=None, finished=finished, verdict=verdict, path="run.sqlite", reason="the norm is nan", advice="Try less."
    )
    with pytest.raises(typer.Exit) as ended:
        exit_by_verdict(run)
    assert ended.value.exit_code == code
    assert words in capsys.readouterr().err


def test_a_finished_run_does_not_exit():
    exit_by_verdict(SimpleNamespace(writer=None, finished=True, verdict="finished"))


def test_a_figure_is_saved_where_it_was_asked_for(capsys, tmp_path):
    path = tmp_path / "new" / "figure.png"
    save_figure(Figure(), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"figure: {path}\n"
    with pytest.raises(ConfigError, match=r"Name a \.png or \.pdf file"):
        save_figure(Figure(), tmp_path / "figure.what")
