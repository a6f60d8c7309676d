"""What a user can get wrong: the right exception, the value, the limit, the next step; nothing written or lost."""

import re
import sqlite3

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import AsyncFedError, ConfigError, DataError, DelayError, JournalError
from asyncfed.core.types import Budget, Work
from asyncfed.data import Clients, Published, Table
from asyncfed.delays import FunctionDelays
from asyncfed.experiment import changed
from asyncfed.problems.linear import Linear
from asyncfed.strategies import AFL, FedAvg, PublishedScripts

ROWS = [[1.0], [2.0], [3.0]]


def delays_of(answer):
    return FunctionDelays(lambda client, ticket, work: answer).bind(4, 0)


def full_disk(small, path):
    """The file may not grow by a page once it was made: what SQLite then says is what it says on a full disk."""
    from asyncfed.store.journal import Journal

    def create(*arguments, **how):
        journal = make(*arguments, **how)
        (pages,) = journal._connection.execute("PRAGMA page_count").fetchone()
        journal._connection.execute(f"PRAGMA max_page_count = {pages}")
        return journal

    make = Journal.create
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "create", create)
        af.run(small(budget=Budget(rounds=2000)), out=path)


BAD_CALLS = {
    "NaN in the data": (
        lambda small, path: Table.from_arrays([[1.0], [np.nan], [3.0]], [1.0, 2.0, 3.0]),
        DataError, r"x holds 1 value\(s\) that are NaN or infinite, the first in row 1\. Remove or impute",
    ),
    "infinite targets": (
        lambda small, path: Clients.from_lists([ROWS, ROWS], [[1.0, 2.0, 3.0], [1.0, np.inf, 2.0]]),
        DataError, r"y of client 1 holds 1 value\(s\) that are NaN or infinite, the first in row 1",
    ),
    "an empty client": (
        lambda small, path: Clients.from_lists([ROWS, np.empty((0, 1))], [[1.0, 2.0, 3.0], []]),
        DataError, r"1 of 2 clients have no rows \(client 1\)\. Use fewer clients, more rows",
    ),
    "more clients than rows": (
        lambda small, path: af.run(small(num_clients=40)),
        ConfigError, r"40 clients of at least 1 row\(s\) need 40 rows, but there are 32\. Use fewer clients, more rows",
    ),
    "a split that leaves a client empty": (
        lambda small, path: af.run(small(num_clients=30, split=Published(concentration=0.5))), DataError, "no rows",
    ),
    "mismatched lengths": (
        lambda small, path: Table.from_arrays(ROWS, [1.0, 2.0]),
        DataError, "has 3 rows but y has 2; each row needs exactly one target",
    ),
    "labels for a loss without": (
        lambda small, path: Linear(Clients.from_lists([ROWS], [[1.0, 2.0, 3.0]]), loss="hinge"),
        DataError, r'"hinge" needs labels −1 and \+1, but y holds 2\.0.*"least_squares"',
    ),
    "more in flight than clients": (
        lambda small, path: af.run(small(strategy=AFL(concurrency=5)), out=path),
        ConfigError, r"strategy\.concurrency is 5, but there are only 4 clients.*at most 4, or use a sampler",
    ),
    "a cohort larger than the clients": (
        lambda small, path: af.run(small(strategy=FedAvg(cohort_size=9)), out=path),
        ConfigError, r"strategy\.cohort_size is 9, but there are only 4 clients",
    ),
    "nobody at work": (
        lambda small, path: af.run(small(strategy=PublishedScripts(cohort_size=0)), out=path),
        ConfigError, r"strategy\.cohort_size is 0; at least 1 client must be at work",
    ),
    "a negative delay": (
        lambda small, path: af.run(small(), delays=delays_of(-2.0)),
        DelayError, r"client \d, ticket 0 a download of 0\.0 s, a compute of -2\.0 s.*finite and >= 0.*Correct the",
    ),
    "a delay that is NaN": (
        lambda small, path: af.run(small(), delays=delays_of(float("nan"))), DelayError, "compute of nan s",
    ),
    "a delay that is no number": (
        lambda small, path: af.run(small(), delays=delays_of(None)), DelayError, r"answered None.*number of seconds",
    ),
    "an unknown preset": (
        lambda small, path: af.presets.preset("regresion"), ConfigError, r'"regresion". Did you mean "regression"\?',
    ),
    "an unknown strategy": (
        lambda small, path: af.presets.regression(strategy="fedsync"), ConfigError, r'"fedsync". Did you mean',
    ),
    "no budget": (
        lambda small, path: small(budget=Budget()), ConfigError, "would never end; set rounds, updates or elapsed",
    ),
    "a budget of nothing": (
        lambda small, path: Budget(rounds=0), ConfigError, r"budget\.rounds is 0; it must be positive, or left out",
    ),
    "a rate of zero": (
        lambda small, path: Work(learning_rate=0.0), ConfigError, r"work\.learning_rate is 0\.0; it must be a positive",
    ),
    "a full disk": (
        full_disk, JournalError, r"run\.sqlite is full\. Everything up to the last checkpoint is safe; make room, then",
    ),
    "an unwritable folder": (
        lambda small, path: af.run(small(), out=path.with_name("file") / "run.sqlite"),
        JournalError, r"folder .*file cannot be made \(.*\)\. Choose another --out",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "words"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_from_python(small, tmp_path, call, kind, words):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(kind, match=words) as caught:
        call(small, tmp_path / "run.sqlite")
    assert isinstance(caught.value, AsyncFedError)
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("name", ["more in flight than clients", "a cohort larger than the clients", "nobody at work"])
def test_a_bad_experiment_is_refused_before_anything_is_written(small, tmp_path, name):
    af.run(small(), out=tmp_path / "run.sqlite").journal.close()
    before = (tmp_path / "run.sqlite").read_bytes()
    bad = {"more in flight than clients": AFL(concurrency=5), "nobody at work": AFL(concurrency=0)}
    with pytest.raises(ConfigError):
        af.run(small(strategy=bad.get(name, FedAvg(cohort_size=9))), out=tmp_path / "run.sqlite", force=True)
    assert (tmp_path / "run.sqlite").read_bytes() == before


def test_force_does_not_touch_the_old_run_unless_the_new_one_can_begin(small, tmp_path):
    path = tmp_path / "run.sqlite"
    af.run(small(), out=path).journal.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="threads is 0"):
        af.run(small(), out=path, force=True, threads=0)
    assert path.read_bytes() == before


def test_after_a_full_disk_the_run_can_be_resumed(small, tmp_path):
    path = tmp_path / "run.sqlite"
    with pytest.raises(JournalError):
        full_disk(small, path)
    experiment = small(budget=Budget(rounds=2000))
    assert not af.load(path).finished
    assert af.resume(path).sha256 == af.run(experiment).sha256


# ---- through the command line ----------------------------------------------------------------------------------

STRATEGY = "[strategy]\nkind = 'afl'\n"
BAD_TOML = {
    "an unknown key": ("num_clint = 3", r"no key `num_clint`. Did you mean \"num_clients\"\?"),
    "an unknown nested key": (STRATEGY + "concurency = 3", r"\[strategy\] has no key `concurency`.*\"concurrency\"\?"),
    "a deeply nested one": (STRATEGY + "[strategy.work]\nepoch = 3", r"\[strategy\.work\] has no key `epoch`.*epochs"),
    "a wrong type": ("seed = 'one'", r"Expected `int`, got `str` - at `seed`"),
    "a wrong nested type": (STRATEGY + "concurrency = 'all'", r"got `str` - at `strategy\.concurrency`"),
    "invalid TOML": ("seed = = 3", r"is not valid TOML: .*line 1"),
    "600 brackets": ("seed = " + "[" * 600 + "]" * 600, r"is nested more deeply than TOML can be read\. An experiment"),
    "100 brackets": ("seed = " + "[" * 100 + "]" * 100, r"is nested in more than 64 levels"),
    "a key of 50,000 parts": (".".join(["a"] * 50_000) + " = 1", r"has a key of more than 64 parts\. An experiment"),
    "a number of 5,000 digits": ("seed = " + "9" * 5000, r"is not valid TOML: Exceeds the limit"),
    "a number of 70 bits": (f"seed = {2**70}", r"seed is a whole number of 71 bits; at most 63 can be used"),
    "an unknown strategy": ("[strategy]\nkind = 'fedbuf'", r'strategy\.kind is "fedbuf".*Did you mean "fedbuff"\?'),
    "an unknown delay": ("[delays.compute]\nkind = 'paretto'", r'kind is "paretto".*Did you mean "pareto"\?'),
    "a negative delay": ("[delays.compute]\nkind = 'constant'\nvalue = -1", r"constant\.value is -1"),
    "more in flight than clients": (STRATEGY + "concurrency = 11", r"concurrency is 11, but there are only 10 clients"),
    "too few rows": ("num_clients = 5000", r"5000 clients|clients have no rows"),
    "data of a trace that is not there": ("[delays]\ntrace = 'none.csv'", r"trace none\.csv cannot be read"),
}  # fmt: skip


def quiet(result):
    """The complaint, which is all there is."""
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    return result.err


@pytest.mark.parametrize(("text", "words"), BAD_TOML.values(), ids=BAD_TOML)
def test_from_a_toml_file(cli, tmp_path, text, words):
    toml, out = tmp_path / "bad.toml", tmp_path / "run.sqlite"
    toml.write_text(text)
    with pytest.raises(AsyncFedError, match=words):
        af.run(af.read_toml(toml))
    assert re.search(words, quiet(cli("run", toml, "--out", out)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.toml"]


BAD_COMMANDS = {
    "an unknown preset": (
        ["run", "regresion"],
        'There is no preset "regresion", nor data of that name. Did you mean "regression"?',
    ),
    "an unknown reading": (["run", "svm", "--reading", "txt"], 'There is no reading "txt". Did you mean "text"?'),
    "unknown delays": (["run", "svm", "--delays", "laptp"], 'There are no delays "laptp". Did you mean "laptop"?'),
    "a bad fraction": (["run", "svm", "--fraction", "1.5"], "fraction is 1.5; it must be above 0 and at most 1"),
    "a bad setting": (["run", "svm", "--set", "seed"], 'has no "="; write --set key=value'),
    "an unknown setting": (["run", "svm", "--set", "sed=3"], 'no key `sed`. Did you mean "seed"?'),
    "a missing TOML file": (["run", "none.toml"], "none.toml cannot be read"),
    "a missing run": (["show", "none.sqlite"], "There is no run at none.sqlite"),
    "a missing run to resume": (["resume", "none.sqlite"], "There is no run at none.sqlite"),
    "zero rounds": (["run", "svm", "--rounds", "0"], "budget.rounds is 0; it must be positive"),
    "zero threads": (["run", "svm", "--threads", "0"], "threads is 0; it must be at least 1"),
    "a preset's option for a file": (
        ["run", "x.toml", "--num-clients", "3"],
        "--num-clients: for presets and tables; in a TOML file",
    ),
}


@pytest.mark.parametrize(("arguments", "words"), BAD_COMMANDS.values(), ids=BAD_COMMANDS)
def test_from_the_command_line(cli, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in quiet(cli(*arguments))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_from_the_command_line(cli, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be made" in quiet(cli("run", "regression", "--rounds", 1, "--out", tmp_path / "file" / "run.sqlite"))


# ---- resuming with something else ------------------------------------------------------------------------------


@pytest.fixture
def unfinished(small, tmp_path):
    """A run broken off before its end."""

    def give_up(progress):
        raise KeyboardInterrupt

    path = tmp_path / "run.sqlite"
    with pytest.raises(KeyboardInterrupt):
        af.run(small(budget=Budget(rounds=300)), out=path, watch=give_up, checkpoint_seconds=0.0)
    return path


def test_resuming_with_a_changed_experiment_lists_what_changed(cli, small, unfinished, tmp_path):
    other = changed(small(budget=Budget(rounds=300)), {"seed": 3, "strategy.work.epochs": 2})
    with pytest.raises(JournalError, match=r"Changed: seed: 0 -> 3; strategy\.work\.epochs: 1 -> 2\. .*Nothing was"):
        af.resume(unfinished, experiment=other)
    (tmp_path / "other.toml").write_text(af.to_toml(other))
    complaint = quiet(cli("resume", unfinished, "--experiment", tmp_path / "other.toml"))
    assert "Changed: seed: 0 -> 3; strategy.work.epochs: 1 -> 2." in complaint
    assert "start a new run with another --out" in complaint
    assert af.resume(unfinished).sha256 == af.run(small(budget=Budget(rounds=300))).sha256


def test_resuming_with_other_data_is_refused(small, unfinished):
    with pytest.raises(JournalError, match=r"run on other data or another loss.*Give the same problem again"):
        af.resume(unfinished, problem=small(seed=1).problem())
    with pytest.raises(JournalError, match="on other data"):
        af.resume(unfinished, problem=small(model=af.problems.linear.LinearModel(loss="mse")).problem())
    assert af.resume(unfinished).finished


def test_measuring_otherwise_is_no_other_experiment(small, unfinished):
    base = small(budget=Budget(rounds=300))
    seldom = changed(base, {"evaluation.every": 100, "name": "renamed"})
    assert af.resume(unfinished, experiment=seldom).sha256 == af.run(base).sha256


@pytest.mark.parametrize("command", ["show", "resume", "verify"])
@pytest.mark.parametrize("damage", ["foreign", "text", "truncated"])
def test_a_damaged_or_foreign_file_from_the_command_line(cli, small, tmp_path, command, damage):
    path = tmp_path / "run.sqlite"
    if damage == "foreign":
        with sqlite3.connect(path) as file:
            file.execute("CREATE TABLE bank (money)")
        file.close()
    elif damage == "text":
        path.write_text("dear diary, " * 400)
    else:
        af.run(small(), out=path).journal.close()
        path.write_bytes(path.read_bytes()[:9000])
    before = path.read_bytes()
    assert "not an AsyncFed run" in quiet(cli(command, path))
    assert "exists already" in quiet(cli("run", "regression", "--rounds", 1, "--out", path))
    assert path.read_bytes() == before


# ---- a run that goes wrong -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_diverging_run_is_kept_and_says_so(cli, small, tmp_path):
    wild = AFL(concurrency=2, aggregate="delta_sum", work=Work(epochs=30, batch_size=4, learning_rate=1.0))
    toml, out = tmp_path / "wild.toml", tmp_path / "run.sqlite"
    toml.write_text(af.to_toml(small(strategy=wild)))
    result = cli("run", toml, "--out", out)
    assert result.code == 1
    assert "diverged: the model's norm is" in result.err
    assert "smaller strategy.work.learning_rate" in result.err
    assert af.load(out).verdict == "diverged"
    assert cli("show", out).code == 1


def test_a_starving_run_is_kept_and_says_so(cli, small, tmp_path):
    from asyncfed.engine.plan import Churn

    toml, out = tmp_path / "empty.toml", tmp_path / "run.sqlite"
    toml.write_text(af.to_toml(small(churn=tuple(Churn(time=0.5, client=c, event="leave") for c in range(4)))))
    result = cli("run", toml, "--out", out)
    assert result.code == 1
    assert result.err.count("starved") == 1
    assert af.load(out).verdict == "starved"
