"""`asyncfed delays` prints and draws what delays are like."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from asyncfed.cli.app import app
from asyncfed.core.errors import ConfigError
from asyncfed.delays import phones
from asyncfed.experiment import Experiment, to_toml


def called(*words: str) -> str:
    done = CliRunner().invoke(app, ["delays", *words], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_it_prints_the_numbers() -> None:
    printed = called("cluster", "--num-clients", "5", "--tickets", "40")
    assert "cluster: a shared cluster" in printed
    assert "coefficient of variation between clients" in printed
    assert "all, always" in printed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["none", "cluster", "hospital", "phones"])
def test_it_draws_a_figure(name: str, tmp_path: Path) -> None:
    called(name, "--num-clients", "5", "--tickets", "40", "--out", str(tmp_path / "delays.png"))
    assert (tmp_path / "delays.png").read_bytes()[:4] == b"\x89PNG"


def test_delays_come_from_files_too(tmp_path: Path) -> None:
    experiment = tmp_path / "night.toml"
    experiment.write_text(to_toml(Experiment(name="night", delays=phones())))
    assert "the delays of experiment night" in called(str(experiment), "--num-clients", "3", "--tickets", "5")
    seconds = tmp_path / "seconds.csv"
    seconds.write_text("client,seconds\n0,1.5\n0,1.5\n")
    assert "1.5 to 1.5" in called(str(seconds), "--tickets", "4")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'There are no delays "clustr"\. Did you mean "cluster"'):
        called("clustr")
