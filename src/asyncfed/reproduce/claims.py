"""The claims of the paper's simulations, in its order, with what decides each and the figure that shows it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from asyncfed.presets import Reading
from asyncfed.reproduce import claim_tests as tests
from asyncfed.reproduce.claim_tests import Assessment
from asyncfed.reproduce.run_lookup import Study

BOTH: tuple[Reading, ...] = ("published", "text")


class Claim(NamedTuple):
    """One claim in our words, the statistic that decides it, and the readings it is tested in."""

    id: str
    figure: int
    claim: str
    statistic: str
    unit: str
    assess: Callable[[Study, Reading], Assessment]
    readings: tuple[Reading, ...] = BOTH


SPEED = "rounds to a loss that both reach, ratio paired over seeds, geometric mean"
CHANGE = "ratio of the loss's relative change from round to round in the second half, geometric mean over seeds"
LEVEL = "ratio of losses, paired over seeds, geometric mean"

REGRESSION = (
    Claim(
        "regression-delay-acceptable",
        1,
        "Regression: delays stay within an acceptable threshold, so the clients do not drift apart.",
        "largest delay spread of a run, mean over seeds",
        "s",
        partial(tests.delay_is_acceptable, figure=1),
    ),
    Claim(
        "regression-converges",
        2,
        "Regression: the server loss converges within an acceptable bound.",
        "objective at the end over the least possible, geometric mean over seeds",
        "x",
        tests.reaches_the_optimum,
    ),
    Claim(
        "wall-clock-linear",
        3,
        "Cumulative wall-clock time grows nearly linearly with the rounds.",
        "R² of a straight line, mean over seeds",
        "R²",
        tests.wall_clock_is_linear,
    ),
    Claim(
        "energy-proportional",
        4,
        "The energy proxy grows in proportion to the wall-clock time.",
        "relative standard deviation of energy over wall-clock along a run, mean over seeds",
        "",
        tests.energy_follows_wall_clock,
    ),
    Claim(
        "regression-loss-decreases",
        5,
        "Regression: the server loss consistently decreases with every client fraction.",
        "loss at the end over that of round 1, worst fraction, geometric mean over seeds",
        "x",
        partial(tests.loss_decreases, figure=5),
    ),
    Claim(
        "regression-more-clients-faster",
        5,
        "Regression: higher client fractions converge faster.",
        SPEED,
        "x",
        partial(tests.more_clients_are_faster, figure=5),
    ),
    Claim(
        "regression-few-clients-vary",
        5,
        "Regression: low client fractions vary more.",
        CHANGE,
        "x",
        partial(tests.few_clients_vary_more, figure=5),
    ),
    Claim(
        "regression-sync-faster-early",
        6,
        "Regression: synchronous learning converges faster in the early rounds.",
        SPEED,
        "x",
        partial(tests.synchronous_is_faster, figure=6),
    ),
    Claim(
        "regression-sync-hundredth",
        6,
        'Regression: synchronous learning stabilises "around 10⁻²".',
        "mean squared error at the end, mean of the fractions, geometric mean over seeds",
        "MSE",
        tests.settles_at_a_hundredth,
    ),
    Claim(
        "regression-afl-varies",
        6,
        "Regression: the loss of AFL varies more.",
        CHANGE,
        "x",
        partial(tests.afl_varies_more, figure=6),
    ),
    Claim(
        "regression-afl-matches",
        6,
        "Regression: AFL matches synchronous learning after about 200 rounds.",
        "round from which its loss stays within 10 %, mean over seeds",
        "rounds",
        tests.matches_after_200_rounds,
    ),
)

SVM = (
    Claim(
        "svm-more-sensitive",
        15,
        "The SVM is more sensitive to client delays than the regression.",
        "growth of the SVM's loss over that of the regression's, delays 100 times the laptop's, paired over seeds",
        "x",
        tests.svm_is_more_sensitive,
        ("text",),
    ),
    Claim(
        "svm-stabilises",
        8,
        "SVM: the loss stabilises after around 200–300 rounds.",
        "loss at the end over that of rounds 250 to 300, geometric mean over seeds",
        "x",
        tests.svm_settles,
    ),
    Claim(
        "svm-fluctuates",
        8,
        "SVM: fluctuations persist in the later stages, likely due to non-IID data.",
        "relative change of the loss from round to round in the second half, geometric mean over seeds",
        "per round",
        tests.fluctuations_persist,
    ),
    Claim(
        "svm-loss-decreases",
        9,
        "SVM: the loss falls with every client fraction.",
        "loss at the end over that of round 1, worst fraction, geometric mean over seeds",
        "x",
        partial(tests.loss_decreases, figure=9),
    ),
    Claim(
        "svm-more-clients-faster",
        9,
        "SVM: higher client fractions converge faster.",
        SPEED,
        "x",
        partial(tests.more_clients_are_faster, figure=9),
    ),
    Claim(
        "svm-few-clients-vary",
        9,
        "SVM: low client fractions vary more.",
        CHANGE,
        "x",
        partial(tests.few_clients_vary_more, figure=9),
    ),
    Claim(
        "svm-fluctuations-grow",
        9,
        "SVM: fluctuations become more apparent in later rounds.",
        "ratio of the mean curve's relative change from round to round, last quarter over second, geometric mean",
        "x",
        tests.fluctuations_grow,
    ),
    Claim(
        "svm-sync-faster",
        10,
        "SVM: synchronous learning converges faster.",
        SPEED,
        "x",
        partial(tests.synchronous_is_faster, figure=10),
    ),
    Claim(
        "svm-afl-higher",
        10,
        "SVM: AFL ends at a higher loss.",
        LEVEL,
        "x",
        tests.afl_ends_higher,
    ),
    Claim(
        "svm-afl-varies",
        10,
        "SVM: the loss of AFL varies more, most of all in later rounds.",
        CHANGE,
        "x",
        partial(tests.afl_varies_more, figure=10),
    ),
)

AROUND = (
    Claim(
        "data-non-iid",
        14,
        "The clients' data are non-IID (Dirichlet with concentration 0.5).",
        "share of data sets whose published split a test distinguishes from a random one",
        "",
        tests.split_is_non_iid,
        ("published",),
    ),
    Claim(
        "afl-faster-light-delays",
        11,
        "Asynchrony leads to faster convergence (regression, light delays).",
        "virtual time to a loss that both reach, AFL over synchronous, paired over seeds",
        "x",
        partial(tests.afl_is_faster_in_time, panel=0),
        ("text",),
    ),
    Claim(
        "afl-faster-heavy-delays",
        11,
        "Asynchrony leads to faster convergence (regression, heavy-tailed delays).",
        "virtual time to a loss that both reach, AFL over synchronous, paired over seeds",
        "x",
        partial(tests.afl_is_faster_in_time, panel=1),
        ("text",),
    ),
    Claim(
        "participation-fair",
        16,
        "AFL maintains fairness in client participation.",
        "merges of the fastest third of the clients over those of the slowest, geometric mean over seeds",
        "x",
        tests.participation_is_fair,
        ("text",),
    ),
)

CLAIMS = (*REGRESSION, *SVM, *AROUND)
