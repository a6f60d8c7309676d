"""asyncfed privacy plan and audit, and --privacy: what is said, what is refused, how they end."""

import asyncfed as af

RUN = ("run", "regression", "--strategy", "fedbuff", "--num-clients", 40, "--rounds", 6)


def words_of(text):
    """As one line, however wide the terminal was."""
    return " ".join(text.split())


def test_plan_gives_the_noise_or_the_epsilon_and_a_figure(cli, tmp_path):
    assert "noise multiplier 6.30498856" in cli("privacy", "plan", "--epsilon", 2).out
    figure = tmp_path / "plan.png"
    said = cli("privacy", "plan", "--noise", 4, "--plot", figure)
    assert "epsilon 3.34140947 at delta 1e-05 for 10 participations" in said.out
    assert figure.stat().st_size > 1000
    tree = cli("privacy", "plan", "--mode", "tree", "--releases", 100, "--separation", 4, "--epsilon", 2)
    assert "node of the tree" in tree.out
    assert cli("privacy", "plan").code == 2


def test_a_private_run_from_two_options_is_explained_and_audited(cli, tmp_path):
    out = tmp_path / "run.sqlite"
    said = cli(*RUN, "--privacy", "central", "--epsilon", 4, "--out", out)
    words = words_of(said.out + said.err)
    assert said.code == 0
    assert "learns at most (epsilon 4, delta 1e-05) about any one client" in words
    assert "they are all zero (zero-out adjacency)" in words
    assert "The noise of a release has a length of about" in words
    assert "Nothing is measured on clients' data" in words
    assert "objective" not in said.out
    audited = cli("privacy", "audit", out)
    assert audited.code == 0
    assert "The caps were kept." in words_of(audited.out)
    assert "Not protected:" in audited.out
    assert "What each client has lost" in audited.out
    assert "The caps were kept." in words_of(cli("show", out).out)
    assert cli("verify", out).code == 0
    page = tmp_path / "page.html"
    assert cli("report", out, "--out", page).code == 0
    assert "zero-out adjacency" in page.read_text()
    assert cli("show", out, "--plot", tmp_path / "run.png").code == 0
    assert af.load(out).experiment.privacy.epsilon == 4.0


def test_a_run_that_promises_nothing_says_so(cli, done):
    said = cli("privacy", "audit", done)
    assert said.code == 1
    assert "nothing is claimed" in said.out


def test_what_is_unsound_or_incomplete_is_refused(cli):
    assert "merges models" in cli("run", "regression", "--strategy", "fedavg", "--privacy", "central").err
    assert "clip is -1.0" in cli("privacy", "plan", "--epsilon", 2, "--clip", -1).err
    assert "buffer-size" in cli("privacy", "plan", "--epsilon", 2, "--buffer-size", 0).err
    assert "Give --privacy" in cli(*RUN, "--epsilon", 2).err
    assert 'Did you mean "central"?' in cli(*RUN, "--privacy", "centrl").err
