"""The rivals' benchmark with a rival made up for the test: nothing is installed and nobody's figures are judged."""

import json
import sys
from pathlib import Path
from shutil import which

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))  # the benchmarks lie beside the package, not in it

from benchmarks.rivals import __main__ as driver
from benchmarks.rivals import environments, limit_workloads, report, task, write_data
from benchmarks.rivals.environments import NotInstalled
from benchmarks.rivals.one_run import Conditions, run_once
from benchmarks.rivals.protocol import Clock
from benchmarks.rivals.systems import SYSTEMS, System

FAKE = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
for name in ("--data", "--share", "--speed"):
    parser.add_argument(name)
parser.add_argument("--only", action="append")
options = parser.parse_args()
if options.speed == "none":
    sys.exit("ImportError: no module named torchvision")
print("chatter", file=sys.stderr)
seconds = 1.0 / float(options.speed) / (2 if os.environ.get("OMP_NUM_THREADS") == "1" else 1)
figures = {name: {"updates": 10, "seconds": 10 * seconds} for name in options.only}
print(json.dumps({"versions": {"fake": "1.2"}, "workloads": figures}))
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """`fake(speed)`: a system that claims so many updates a second, and twice as many with one thread."""
    (tmp_path / "fake_rival.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda speed, name="Fake", **more: System(name, "fake_rival", arguments=("--speed", str(speed)), **more)


@pytest.fixture
def tasks(tmp_path):
    """Small tasks in files, as every rival reads them."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 20, 10)).astype(np.float32), rng.normal(size=(6, 20)).astype(np.float32)
    images, labels = rng.normal(size=(6, 8, 784)).astype(np.float32), rng.integers(0, 10, (6, 8))
    labels[0, 0] = 9
    for each in (
        task.Task("w1", x, y, epochs=2, batch=8, rate=0.01, in_flight=3),
        task.Task("w3", images, labels, epochs=1, batch=4, rate=0.1, in_flight=3),
    ):
        task.save(each, tmp_path)
    return {name: task.load(tmp_path, name) for name in ("w1", "w3")}


def rows_of(**rates):
    kinds = {"Ours": {"is_ours": True}, "Limit": {"is_limit": True}}
    rows = []
    for name, rate in rates.items():
        figures = {"w1": {"updates": 10 * rate, "seconds": 10.0}} if rate else {"w1": {"error": "it does not start"}}
        system = System(name, "module", **kinds.get(name, {}))
        rows.append(report.summary(system, [{"versions": {"package": "1.2"}, "workloads": figures}]))
    return rows


def test_all_systems_run_in_turn_and_the_best_pass_counts(fake, tmp_path):
    said = []
    systems = [fake(100, "Ours", is_ours=True), fake(4, "Slow")]
    conditions = Conditions(tmp_path, workloads=("w1", "w2"))
    first, rows = driver.compare(systems, 2, conditions, tmp_path / "logs", said.append)
    assert first[1]["all_passes"]["w1"] == pytest.approx([8.0])
    assert [line.split(",")[0] for line in said if "pass" in line] == ["Ours", "Slow", "Ours", "Slow"]
    slow = rows[1]
    assert slow["all_passes"]["w1"] == pytest.approx([8.0, 4.0])  # one thread first, then PyTorch's own choice
    assert slow["updates_per_second"] == pytest.approx({"w1": 8.0, "w2": 8.0})
    assert slow["versions"] == {"fake": "1.2"}
    assert report.ahead(rows) == pytest.approx({"w1": 25.0, "w2": 25.0})


def test_a_rival_that_does_not_run_is_listed_with_the_reason(fake, tmp_path):
    ((row,),) = driver.compare([fake("none")], 1, Conditions(tmp_path), tmp_path / "logs", lambda text: None)
    assert row["updates_per_second"] == {}
    assert "no module named torchvision" in row["errors"]["w1"]
    assert "status 1" in row["errors"]["w1"]


def test_a_rival_that_cannot_be_installed_is_listed_with_the_command(fake, tmp_path, monkeypatch):
    def refuse(system):
        raise NotInstalled("`python -m pip install fake==1` failed: no matching distribution")

    monkeypatch.setattr(environments, "interpreter", refuse)
    ((row,),) = driver.compare([fake(1)], 1, Conditions(tmp_path), tmp_path / "logs", lambda text: None)
    assert "pip install fake==1" in row["errors"]["w2"]


def test_a_failing_command_of_an_installation_is_named():
    with pytest.raises(NotInstalled, match=r"-c import sys.*too old"):
        environments._do([sys.executable, "-c", "import sys; sys.exit('too old')"])


def test_a_rival_that_hangs_is_ended(tmp_path, monkeypatch):
    (tmp_path / "hangs.py").write_text("import time; time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer = run_once(System("Hangs", "hangs"), Path(sys.executable), Conditions(tmp_path, timeout=0.5), tmp_path / "l")
    assert answer["workloads"]["w1"]["error"] == "not done after 0.5 s"


def test_the_command_writes_figures_table_and_picture(fake, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(driver, "write_tasks", lambda folder: folder.mkdir(parents=True))
    out = tmp_path / "bench"
    driver.main(["--quick", "--out", str(out)], [fake(100, "Ours", is_ours=True), fake(4, "Slow"), fake("none", "No")])
    assert "| Slow | 1.2 | 8.0 (25x) |" in capsys.readouterr().out
    results = json.loads((out / "rivals.json").read_text())
    assert [row["name"] for row in results["systems"]] == ["Ours", "Slow", "No"]
    assert results["machine"]["passes"] == 1
    assert (out / "rivals.png").stat().st_size > 5000
    assert "No, W1" in (out / "rivals.md").read_text()


def test_an_unknown_system_is_refused_with_the_known_names(tmp_path, capsys):
    with pytest.raises(SystemExit):
        driver.main(["--only", "nobody", "--out", str(tmp_path)])
    assert "fluke" in capsys.readouterr().err


def test_table():
    text = report.markdown(rows_of(Limit=40_000, Ours=10_000, Rival=22.5, Absent=0))
    assert "processor time" not in text
    assert text.splitlines()[2:6] == [
        "| Limit | – | 40,000 (0.25x) | – | – | no | no |",
        "| Ours | 1.2 | 10,000 | – | – | no | no |",
        "| Rival | 1.2 | 22.5 (444x) | – | – | no | no |",
        "| Absent | 1.2 | – | – | – | no | no |",
    ]
    assert text.endswith("Not measured:\n\n- Absent, W1: it does not start\n")


def test_rates_by_processor_time_have_a_table_of_their_own():
    rows = rows_of(Ours=10_000, Rival=20, Spread=30)
    rows[0]["per_cpu_second"], rows[1]["per_cpu_second"] = {"w1": 12_000.0}, {"w1": 24.0, "w3": 7.0}
    lines = report.markdown(rows).splitlines()
    assert lines[-2:] == ["| Ours | 12,000 | – | – |", "| Rival | 24.0 (500x) | – | 7.0 |"]


def test_every_system_has_its_file():
    folder = Path(driver.__file__).parent
    assert all((folder / f"{system.module.split('.')[-1]}.py").exists() for system in SYSTEMS)
    assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)


def test_the_first_merge_starts_the_clock():
    clock = Clock()
    for updates, time in ((5, 10.0), (5, 11.0), (5, 12.0)):
        clock.merged(updates, at=time)
    assert clock.figures(in_one_process=False) == {"updates": 10, "seconds": 2.0}
    with pytest.raises(RuntimeError, match="at least 2"):
        Clock().figures(in_one_process=True)


def test_rivals_train_on_the_samples_of_our_own_runs(tmp_path):
    write_data.write_tasks(tmp_path)
    w1, w2, w3 = (task.load(tmp_path, name) for name in task.WORKLOADS)
    assert (w1.x.shape, w1.epochs, w1.batch, w1.in_flight) == ((10, 200, 10), 50, 32, 5)
    assert (w2.x.shape, w2.epochs, w2.in_flight, w2.rounds(1000)) == ((1000, 20, 10), 1, 100, 10)
    assert (w3.x.shape, w3.batch, w3.in_flight, w3.is_network) == ((100, 60, 784), 20, 10, True)


@pytest.mark.skipif(which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(("name", "rows"), [("w1", 18), ("w3", 6)])
def test_a_step_of_the_limit_is_a_step_of_pytorch(tasks, name, rows):
    """One update of one of two clients, all its rows in one batch, so that their order does not matter."""
    torch = pytest.importorskip("torch")
    one = tasks[name]
    one = one._replace(x=one.x[:2, :rows].copy(), y=one.y[:2, :rows].copy(), epochs=1, batch=rows, in_flight=1)
    library, kept = limit_workloads.prepared(one)
    before = limit_workloads.module_of(library, one)
    library.start(0, 0, 1)
    library.arrive(0, 1, 2)
    after = limit_workloads.module_of(library, one)
    library.tear_down()
    x, y = one._replace(y=kept[1].astype(one.y.dtype)).tensors()[0]
    one.loss()(before(x), y).backward()
    for start, end in zip(before.parameters(), after.parameters(), strict=True):
        assert torch.allclose(end, start - one.rate * start.grad / one.num_clients, rtol=1e-4, atol=1e-7)


@pytest.mark.skipif(which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("name", ["w1", "w3"])
def test_the_limit_learns(tasks, name):
    pytest.importorskip("torch")
    module = limit_workloads.run(tasks[name], 50, Clock())
    assert tasks[name].mean_loss(module) < tasks[name].mean_loss(tasks[name].module())
