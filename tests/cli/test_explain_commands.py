"""`asyncfed explain`: the chances of being drawn that need the least time; the time that no method can beat; codecs."""


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


def test_the_best_possible_clock_for_numbers_of_ones_own(cli):
    numbers = ("--smoothness", "2", "--variance", "5", "--target", "0.5")
    shown = cli("explain", "clock", "--times", "2x1", *numbers, "--start-gap", "3", "--strong-convexity", "1").out
    assert "nonconvex 72 " in shown  # 1 (12 + 120 / 2)
    assert "strongly convex" in shown
    assert "until the squared gradient is 0.5" in shown
    assert "convex: until the objective gap" in shown


def test_a_clock_without_a_sort_of_problem_says_what_is_missing(cli):
    said = cli("explain", "clock", "--times", "2x1", "--smoothness", "2", "--variance", "5", "--target", "0.5")
    assert said.code != 0
    assert "start_gap (any problem)" in said.err


def test_codecs_with_their_constants(cli):
    shown = cli("explain", "codecs", "--params", "1000").out
    assert "top_k fraction = 0.1 466 8.58x 0.1 yes needed" in shown
    assert "rand_k fraction = 0.01, scaled = true 48 83.3x none 99 no not with it" in shown
    assert "whole 4,000 1x 1 0 no not needed" in shown
    assert "No bound of the certificates covers compressed changes" in shown
    assert cli("explain", "codecs", "--params", "0").code != 0
