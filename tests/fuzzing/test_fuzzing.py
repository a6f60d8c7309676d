"""Thousands of inputs nobody would write on purpose: each is refused with a clear error, or works; none hangs."""

import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from tests.fuzzing.command_lines import odd_command
from tests.fuzzing.outcome import call_command
from tests.fuzzing.run_files import damaged_run
from tests.fuzzing.settings import bad_settings
from tests.fuzzing.tables import odd_table
from tests.fuzzing.toml_texts import broken_toml

import asyncfed as af
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.strategies import AFL, FedBuff

MANY = 400
"""Inputs of each sort in the slow test: 2,000 in all."""

FEW = 8
"""Inputs of each sort in the test of every day."""

SORTS = ("toml", "settings", "arguments", "tables", "run_files")


@pytest.fixture
def experiments():
    work = Work(epochs=1, batch_size=4, learning_rate=0.01)
    small = af.Experiment(
        name="small", num_clients=4, data=PaperRegression(num_samples=32), split=InOrder(),
        strategy=AFL(concurrency=2, work=work), budget=Budget(rounds=3),
    )  # fmt: skip
    rule = af.rules.Optimised(optimiser=af.rules.Adam())
    return [small, af.replace(small, strategy=FedBuff(concurrency=2, buffer_size=2, work=work, rule=rule))]


@pytest.fixture
def run_files(experiments, tmp_path):
    """Finished runs, and one that was broken off."""
    files = []
    for number, experiment in enumerate(experiments):
        files.append(tmp_path / f"finished-{number}.sqlite")
        af.run(experiment, out=files[-1]).journal.close()

    calls = []

    def give_up(progress):
        calls.append(progress)
        if len(calls) == 3:  # the first checkpoints are written by then
            raise KeyboardInterrupt

    files.append(tmp_path / "stopped.sqlite")
    longer = af.replace(experiments[0], budget=Budget(rounds=300))
    with pytest.raises(KeyboardInterrupt):
        af.run(longer, out=files[-1], watch=give_up, checkpoint_seconds=0.0)
    with closing(sqlite3.connect(files[-1])) as file:  # what was committed goes from the file beside it into this one
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return files


@pytest.fixture
def check(experiments, run_files, tmp_path, monkeypatch):
    """`check(sort, seed)`: makes an input of this sort, gives it to a command, and wants a clear answer."""
    monkeypatch.chdir(tmp_path)
    codes = Counter()

    def make(sort, rng):
        if sort == "toml":
            return broken_toml(rng, tmp_path, experiments)
        if sort == "settings":
            return bad_settings(rng, tmp_path, experiments)
        if sort == "arguments":
            return odd_command(rng, tmp_path, experiments, run_files[0])
        if sort == "tables":
            return odd_table(rng, tmp_path)
        return damaged_run(rng, tmp_path, run_files)

    def call(sort, seed):
        arguments = make(sort, random.Random(f"{sort} {seed}"))
        outcome = call_command(arguments)
        codes[outcome.code] += 1
        shown = " ".join(argument[:200] for argument in arguments)
        assert outcome.is_clear, f"{sort} {seed}: asyncfed {shown}\n{outcome.text[-2000:]}\n{outcome.traceback}"
        return codes

    return call


@pytest.mark.parametrize("sort", SORTS)
def test_some_inputs(check, sort):
    for seed in range(FEW):
        check(sort, f"some {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
def test_many_inputs(check, sort):
    codes = Counter()
    for seed in range(MANY):
        codes = check(sort, f"many {seed}")
    assert codes[2] > MANY / 4  # most are mistakes, and said to be
