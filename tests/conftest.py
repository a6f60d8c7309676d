"""Options of the whole suite, and what tests of several rooms share."""

import sys
from types import SimpleNamespace

import pytest
from hypothesis import settings

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.strategies import AFL

settings.register_profile("unhurried", deadline=None)  # a busy machine is no reason to fail
settings.load_profile("unhurried")


def pytest_addoption(parser):
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write tests/golden/*.json anew from what the strategies decide now; look at the diff before keeping it",
    )


@pytest.fixture
def small():
    """A small experiment that takes no time; keywords replace what it says."""

    def make(**how):
        work = Work(epochs=1, batch_size=4, learning_rate=0.01)
        settings = {
            "name": "small",
            "num_clients": 4,
            "data": PaperRegression(num_samples=32),
            "split": InOrder(),
            "strategy": AFL(concurrency=2, work=work),
            "budget": Budget(rounds=3),
        }
        return af.Experiment(**{**settings, **how})

    return make


@pytest.fixture
def cli(monkeypatch, capsys):
    """`cli("run", ...)`: the command line as a process would run it; gives its exit code, output and complaints."""
    from asyncfed.cli import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["asyncfed", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=" ".join(out.split()), err=" ".join(err.split()), raw=out)

    return call
