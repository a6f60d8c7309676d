"""`asyncfed explain sampling`: the chances of being drawn that need the least time."""


def test_sampling(cli):
    said = cli("explain", "sampling", "--times", "5x1", "--times", "5x10", "--concurrency", "5")
    assert said.code == 0
    assert "10 clients, 5 tickets out at once" in said.out
    assert "equal 0.1 0.1 0.5391 1x 1x" in said.out
    assert "least time 0.1608 0.03917 1.219 1.77x 0.781x" in said.out
    assert "fewest updates 0.08687 0.1131 0.4801 0.984x 1.1x" in said.out


def test_what_makes_no_sense_is_refused(cli):
    said = cli("explain", "sampling", "--times", "5x1", "--noise-ratio", "0")
    assert said.code != 0
    assert "noise_ratio is 0.0; it must be a positive number" in said.err
