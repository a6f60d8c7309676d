"""Options of the whole suite, and what tests of several rooms share."""

import os
import shutil
import sys

# The suite rewrites two hundred files in every worker and starts some hundred interpreters: keep what they compile,
# where numba keeps its own, even if the environment says otherwise. It halves the time of each of them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# There are as many test workers as cores: threads of numpy and torch would only wait for each other. Tests of threads
# ask for theirs. Read when numpy is first imported, so it is said before.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# ruff: noqa: E402
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

import asyncfed as af
from asyncfed.analysis.client_table import ClientTable, worst_tenth
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.types import Budget, Work
from asyncfed.data import InOrder, PaperRegression
from asyncfed.delays import Timing
from asyncfed.runs.header import new_header
from asyncfed.runs.progress import seal
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES
from asyncfed.strategies import AFL
from asyncfed.strategies.schedules import ConstantRate

# A busy machine is no reason to fail. CI draws twice as many examples: `--hypothesis-profile=thorough`.
settings.register_profile("unhurried", deadline=None, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("unhurried")


def pytest_addoption(parser):
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write tests/golden/*.json anew from what the strategies decide now; look at the diff before keeping it",
    )


@pytest.fixture(scope="module")
def browser():
    """A Chromium for the tests of a module: two at once, or one left open, would stop asyncio; without one, skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium: apt-get install chromium")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    quiet += ["--disable-sync", "--no-first-run"]
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, headless=True, args=quiet)
        yield opened
        opened.close()


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
    from asyncfed.cli.app import main

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


@pytest.fixture
def made_clients():
    """`made_clients(losses)`: a table of clients with these losses, each of which would have 1.0 alone."""

    def make(losses, **columns):
        loss, count = np.array(losses, float), len(losses)
        made = {
            "client": np.arange(count),
            "name": np.array([f"shop {number}" for number in range(count)]),
            "rows": np.full(count, 1500),
            "merges": np.arange(1, count + 1),
            "weight": np.full(count, 1 / count),
            "loss": loss,
            "alone": np.ones(count),
            "gain": 1.0 - loss,
            "gain_low": 0.75 - loss,
            "gain_high": 1.25 - loss,
            "alone_epochs": np.zeros(count, int),
            "worst": worst_tenth(loss),
        }
        return ClientTable(made | columns, "test")

    return make


# ---- tiny runs whose every moment can be worked out by hand, and an independent simulator to compare with ----

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


class ScriptedDelays:
    """A delay model that reads from a table: `timings[ticket]` is (download, compute, upload), else `usual`."""

    def __init__(self, timings=(), usual=(0.0, 1.0, 0.0), lost=(), give_up=None, watts=45.0):
        self.timings, self.usual, self.lost, self.give_up, self.power = dict(timings), usual, lost, give_up, watts

    def timing(self, client, ticket, work, num_examples):
        return Timing(*self.timings.get(ticket, self.usual), ticket in self.lost)

    def watts(self, client):
        return self.power

    def finish_compute(self, client, start, seconds):
        return start + seconds

    def lost_after(self, client, ticket, timing):
        return self.give_up if self.give_up is not None else timing.compute


@pytest.fixture
def scripted():
    """`scripted({ticket: seconds})`: delays of which only the computing time differs from ticket to ticket."""

    def make(seconds=(), **how):
        return ScriptedDelays({t: (0.0, s, 0.0) for t, s in dict(seconds).items()}, **how)

    make.parts = ScriptedDelays
    return make


@pytest.fixture
def tiny():
    """An experiment on 8 rows per client, with deltas averaged and a rate that never changes."""

    def make(clients=3, strategy=None, concurrency=None, **how):
        default = AFL(concurrency=concurrency or clients, aggregate="delta_mean", work=WORK, schedule=ConstantRate())
        settings = {
            "num_clients": clients,
            "data": PaperRegression(num_samples=8 * clients),
            "split": InOrder(),
            "strategy": default if strategy is None else strategy,
            "budget": Budget(updates=6),
        }
        return af.Experiment(**{**settings, **how})

    return make


@pytest.fixture
def events():
    """`events(run, "report", ...)`: its events of these kinds (or all), in order, by the names of their fields."""

    def read(run, *kinds):
        rows = [SimpleNamespace(**event._asdict()) for event in run.journal.event_rows()]
        for row in rows:
            row.kind = KIND_NAMES[row.kind]
        return [row for row in rows if not kinds or row.kind in kinds]

    return read


@pytest.fixture
def naive_afl():
    """AFL `delta_mean` with everybody at work, trained one by one in a plain loop.

    Answers with the final model and, for each merge, (ticket, client, start, model before the merge, time, staleness).
    Whoever reports is the only idle client, so it gets the next ticket; only the order of the first tickets is drawn.
    """

    def simulate(problem, delays, first_clients, work, seed, updates):
        x, key, version, now = problem.init(seed), purpose_key(seed, "train"), 0, 0.0
        at_work, next_ticket, merges = {}, 0, []

        def hand_out(client):
            nonlocal next_ticket
            timing = delays.timing(client, next_ticket, work, int(problem.num_examples[client]))
            arrival = now + timing.download + timing.compute + timing.upload
            at_work[next_ticket] = (arrival, client, x, version)
            next_ticket += 1

        for client in first_clients:
            hand_out(client)
        while len(merges) < updates:
            ticket = min(at_work, key=lambda t: (at_work[t][0], t))
            now, client, start, base = at_work.pop(ticket)
            merges.append((ticket, client, start, x, now, version - base))
            trained = problem.local_train(start, client, work, draw_key(key, client, ticket))
            x = x + (trained - start) * (1.0 / len(first_clients))
            version += 1
            hand_out(client)
        return x, merges

    return simulate


@pytest.fixture
def three_clients(small):
    """An experiment for real processes: three clients, all at work."""

    def make(updates=30, clients=3, **how):
        work = Work(epochs=1, batch_size=4, learning_rate=0.01)
        settings = {
            "num_clients": clients,
            "data": PaperRegression(num_samples=8 * clients),
            "strategy": AFL(concurrency=clients, aggregate="mixing", work=work),
            "budget": Budget(updates=updates),
        }
        return small(**{**settings, **how})

    return make


@pytest.fixture
def check_whole(events):
    """`check_whole(path, updates)`: every version is there once, no ticket was merged twice, and it can be replayed."""

    def check(path, updates):
        merges = events(af.load(path), "merge")
        assert [row.version for row in merges] == list(range(1, updates + 1))
        assert len({row.ticket for row in merges}) == updates
        verification = af.verify(path)
        assert verification.ok, verification.lines

    return check


@pytest.fixture
def trusted(tmp_path, run_in_pieces):
    """`trusted(experiment)`: runs it, on one thread and on two, interrupted again and again, and replayed: the same."""

    def run(experiment, arrivals=17):
        whole, path = af.run(experiment, threads=1), tmp_path / "interrupted.sqlite"
        assert af.run(experiment, threads=2).sha256 == whole.sha256
        assert run_in_pieces(experiment, path, arrivals).sha256 == whole.sha256
        verification = af.verify(path, threads=1)
        assert verification.ok, verification.lines
        return whole

    return run


@pytest.fixture
def run_in_pieces():
    """`run_in_pieces(experiment, path, arrivals)`: simulated, and stopped, saved and opened again after so many."""

    def run(experiment, path, arrivals):
        problem = experiment.problem()
        delays = experiment.delays.bind(problem.num_clients, experiment.seed)
        journal = Journal.create(path, new_header(experiment, problem))
        simulation = Simulation(problem, delays, experiment.plan(1), journal)
        while not simulation.finished:
            simulation.advance(arrivals)
            journal.commit(*simulation.checkpoint())
            journal.close()
            journal = Journal.open(path, write=True)
            checkpoint = journal.checkpoint()
            journal.rewind(checkpoint[0]["seq"])
            simulation = Simulation(problem, delays, experiment.plan(1), journal, checkpoint)
        seal(simulation, journal)
        journal.close()
        return af.load(path)

    return run
