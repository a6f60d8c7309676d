import asyncfed as af


def test_the_must_see_command(cli, tmp_path):
    """`asyncfed live --preset regression --clients 8` with one straggler; then its replay, figures and report."""
    path, plot, timeline = (tmp_path / name for name in ("live.sqlite", "run.png", "timeline.png"))
    how = ["--clients", 8, "--strategy", "afl_mixing", "--slow", "3=10", "--task-seconds", 0.005, "--rounds", 40]
    done = cli("live", "--preset", "regression", *how, "--out", path, "--plot", plot, "--timeline", timeline)
    assert done.code == 0, done.err
    assert "all 40 rounds are done" in done.out
    for file in (plot, timeline):
        assert file.read_bytes().startswith(b"\x89PNG")
    assert "verified" in cli("replay", path).out
    run = af.load(path)
    others = [count for client, count in enumerate(run.participation()) if client != 3]
    assert run.participation()[3] < min(others)
    simulated = af.run(af.presets.regression(num_clients=8, strategy="afl_mixing", rounds=40))
    assert run.evaluations["objective"][-1] < 3 * simulated.evaluations["objective"][-1]
    page = cli("report", path, "--out", tmp_path / "page.html")
    assert page.code == 0, page.err
    assert cli("resume", path).code == 0  # it is finished: nothing happens
    assert cli("show", path, "--timeline", timeline).code == 0


def test_what_is_not_understood_is_explained(cli, tmp_path):
    wrong = cli("live", "--slow", "three", "--out", tmp_path / "x.sqlite")
    assert wrong.code == 2
    assert "write --slow 3=10" in wrong.err
