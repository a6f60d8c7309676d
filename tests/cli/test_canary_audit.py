"""`asyncfed privacy canaries`: figures, words and exit codes."""


def test_canaries_stand_with_the_noise_that_is_claimed_and_not_with_half_of_it(cli, tmp_path):
    ask = ("privacy", "canaries", "--mode", "central", "--runs", "80", "--participations", "1", "--epsilon", "10")
    honest = cli(*ask, "--out-dir", tmp_path)
    assert honest.code == 0, honest.err
    assert "central: claimed mu 2.0" in honest.out
    assert "the claim stands" in honest.out
    assert (tmp_path / "central.png").stat().st_size > 10_000
    halved = cli(*ask, "--noise-fraction", "0.5", "--out-dir", tmp_path)
    assert halved.code == 1
    assert "THE CLAIM IS REFUTED" in halved.out


def test_few_runs_are_refused_with_the_limit(cli):
    refused = cli("privacy", "canaries", "--runs", "3")
    assert refused.code == 2
    assert "at least 40" in refused.err
