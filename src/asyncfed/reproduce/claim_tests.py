"""How each claim is judged: from the runs of a figure, in one reading, to a number, a verdict and a reason."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from asyncfed.analysis.statistics import Interval, geometric_interval, mean_interval
from asyncfed.presets import Reading
from asyncfed.reproduce.curve_statistics import (
    Verdict,
    above,
    below,
    cost_ratios,
    linearity,
    matching_round,
    race,
    second_half,
    variability,
)
from asyncfed.reproduce.figures import swept
from asyncfed.reproduce.run_lookup import Line, Study
from asyncfed.reproduce.run_measures import last_level, merge_shares, seconds_per_ticket

CLOSE_TO_OPTIMUM = 1.1
NEARLY_LINEAR = 0.99
PROPORTIONAL = 0.1
SETTLED = 0.9
NOTICEABLE = 0.01
FAIR = 1.1


class Judgement(NamedTuple):
    """The number with its interval, what it lets one say, and why."""

    interval: Interval
    verdict: Verdict
    reason: str


def delay_is_acceptable(study: Study, reading: Reading, figure: int) -> Judgement:
    line = study.line(figure, reading)
    largest = mean_interval([spread.max() for spread in line.columns("delay_spread")])
    staleness = max(float(column.max()) for column in line.columns("staleness_max"))
    effect = f"at a penalty of 0.01 it lowers the rate by at most {largest.mean * 0.01 / (1 + largest.mean * 0.01):.2%}"
    drift = (
        f"what lets clients drift is staleness, here up to {staleness:.0f} versions"
        if reading == "text"
        else "in the scripts clients never download, so they drift apart whatever the delay"
    )
    return Judgement(largest, "cannot be told", f"The paper names no threshold; {effect}, and {drift}.")


def reaches_the_optimum(study: Study, reading: Reading) -> Judgement:
    ratios = []
    for experiment, run in study.line(2, reading).experiments():
        problem = experiment.problem()
        optimum = problem.optimum()
        least = problem.evaluate(optimum)["objective"] if optimum is not None else float("nan")
        ratios.append(last_level(run.outcome.objective) / least)
    found = geometric_interval(ratios)
    return Judgement(
        found,
        below(found, CLOSE_TO_OPTIMUM),
        f"The objective ends at {found.mean:.3f} times the least possible; up to {CLOSE_TO_OPTIMUM} counts as "
        "converged.",
    )


WALL_CLOCK = {"published": "cumulative_longest", "text": "cumulative_spread"}


def wall_clock_is_linear(study: Study, reading: Reading) -> Judgement:
    found = mean_interval([linearity(y) for y in study.line(3, reading).columns(WALL_CLOCK[reading])])
    whose, words = ("scripts", "sum of longest") if reading == "published" else ("text", "sum of (longest - shortest)")
    return Judgement(
        found,
        above(found, NEARLY_LINEAR),
        f"By the definition of the {whose} ({words}); a sum of rounds whose "
        "delays keep their distribution is nearly linear whatever the algorithm.",
    )


def energy_follows_wall_clock(study: Study, reading: Reading) -> Judgement:
    line = study.line(4, reading)
    if reading == "published":
        energies = line.columns("cumulative_longest")
        reason = "The scripts multiply the wall-clock time by a constant, so it could not be otherwise."
    else:
        energies = line.columns("energy")
        reason = (
            "The text adds up every client's computing, its wall-clock only each round's longest minus shortest: "
            "proportional on average, not by definition."
        )
    ratios = [_after_start(e / t) for e, t in zip(energies, line.columns(WALL_CLOCK[reading]), strict=True)]
    found = mean_interval([float(np.std(ratio) / np.mean(ratio)) for ratio in ratios])
    return Judgement(found, below(found, PROPORTIONAL), reason)


def _after_start(y: np.ndarray) -> np.ndarray:
    """Without the first tenth, where a sum has too few terms for its ratios to mean much."""
    return y[len(y) // 10 :]


def loss_decreases(study: Study, reading: Reading, figure: int) -> Judgement:
    line = study.line(figure, reading)
    of_fractions = [line.losses(fraction) for fraction in line.arm.fractions]
    worst = [max(last_level(c.y) / c.y[0] for c in of_seed) for of_seed in zip(*of_fractions, strict=True)]
    rising = np.mean([np.mean(np.diff(c.y) > 0) for curves in of_fractions for c in curves])
    found = geometric_interval(worst)
    return Judgement(
        found,
        below(found, 1.0),
        f"From one round to the next the loss rose in {rising:.0%} of the rounds; what is judged is where it ends, "
        "with the fraction that gains least.",
    )


def more_clients_are_faster(study: Study, reading: Reading, figure: int) -> Judgement:
    line = study.line(figure, reading)
    high, low = line.highest, line.lowest
    per_round = geometric_interval(cost_ratios(line.losses(high), line.losses(low)))
    in_time = geometric_interval(cost_ratios(line.losses(high, "elapsed"), line.losses(low, "elapsed")))
    updates = per_round.mean * high / low
    return Judgement(
        per_round,
        race(per_round, in_time),
        f"{high:.0%} of the clients need {per_round.mean:.2f} times the rounds of {low:.0%}, {in_time.mean:.2f} times "
        f"the virtual time {_ends(in_time)} and {updates:.2f} times the client updates.",
    )


def few_clients_vary_more(study: Study, reading: Reading, figure: int) -> Judgement:
    line = study.line(figure, reading)
    ratios = [
        variability(second_half(few.y)) / variability(second_half(many.y))
        for few, many in zip(line.losses(line.lowest), line.losses(line.highest), strict=True)
    ]
    found = geometric_interval(ratios)
    return Judgement(
        found,
        above(found, 1.0),
        f"In the second half of the run the loss with {line.lowest:.0%} changes from round to round {found.mean:.2f} "
        f"times as much as with {line.highest:.0%}.",
    )


def synchronous_is_faster(study: Study, reading: Reading, figure: int) -> Judgement:
    sync, afl = study.line(figure, reading, "sync"), study.line(figure, reading)
    per_round = geometric_interval(cost_ratios(sync.averaged(), afl.averaged()))
    in_time = geometric_interval(cost_ratios(sync.averaged("elapsed"), afl.averaged("elapsed")))
    why = "; both wait for their slowest client" if reading == "published" else ""
    return Judgement(
        per_round,
        race(per_round, in_time),
        f"Synchronous learning needs {per_round.mean:.2f} times the rounds of AFL and {in_time.mean:.2f} times its "
        f"virtual time {_ends(in_time)}{why}; its rate is not lowered, AFL's is.",
    )


def settles_at_a_hundredth(study: Study, reading: Reading) -> Judgement:
    factor = 1.0 if reading == "published" else 2.0
    found = geometric_interval([factor * last_level(c.y) for c in study.line(6, reading, "sync").averaged()])
    verdict = below(found, 2 * 0.01)  # within a factor of two counts as around
    return Judgement(
        found,
        verdict,
        f"It settles at {found.mean:.3g} in mean squared error: the data's noise has variance 0.04, and no model gets "
        "below it.",
    )


def matches_after_200_rounds(study: Study, reading: Reading) -> Judgement:
    sync, afl = study.line(6, reading, "sync"), study.line(6, reading)
    rounds = [matching_round(a.y, s.y) for a, s in zip(afl.averaged(), sync.averaged(), strict=True)]
    found, limit = mean_interval(rounds), 300 / afl.runs.shorter
    if found.n < len(rounds):
        return Judgement(
            found, "does not hold", f"In {len(rounds) - found.n} of {len(rounds)} seeds AFL ends above it."
        )
    return Judgement(
        found,
        below(found, limit),
        f"From round {found.mean:.0f} on AFL's mean loss stays within 10 % of the synchronous one; up to {limit:.0f} "
        "counts as about 200.",
    )


def afl_varies_more(study: Study, reading: Reading, figure: int) -> Judgement:
    found = geometric_interval(_mean_over_fractions(study.line(figure, reading), study.line(figure, reading, "sync")))
    return Judgement(
        found,
        above(found, 1.0),
        f"In the second half of the run AFL's loss changes from round to round {found.mean:.2f} times as "
        "much as the synchronous one's.",
    )


def _mean_over_fractions(one: Line, other: Line) -> list[float]:
    """Seed by seed, the geometric mean over fractions of the ratio of variabilities."""
    logs = [
        [
            np.log(variability(second_half(a.y)) / variability(second_half(b.y)))
            for a, b in zip(one.losses(fraction), other.losses(fraction), strict=True)
        ]
        for fraction in one.arm.fractions
    ]
    return [float(ratio) for ratio in np.exp(np.mean(logs, axis=0))]


def svm_is_more_sensitive(study: Study, reading: Reading) -> Judgement:
    worse = {}
    for line in study.panel(15, 0):
        levels = swept(line.arm, line.panel.y, line.runs)
        worse[line.arm.preset] = levels / levels[:, :1]
    ratios = worse["svm"] / worse["regression"]
    at = len(ratios[0]) // 2
    found, far = geometric_interval(ratios[:, at]), geometric_interval(ratios[:, -1])
    agreed = above(found, 1.0) if above(found, 1.0) == above(far, 1.0) else "cannot be told"
    return Judgement(
        found,
        agreed,
        f"With delays 100 times the laptop's the SVM's loss grows {found.mean:.3f} times as much as the regression's; "
        f"with 10,000 times, {far.mean:.3g} times. At the laptop's own delays neither feels them.",
    )


def svm_settles(study: Study, reading: Reading) -> Judgement:
    line = study.line(8, reading)
    begin, end = 250 // line.runs.shorter, 300 // line.runs.shorter
    ratios = [last_level(c.y) / float(np.exp(np.mean(np.log(c.y[begin:end])))) for c in line.losses(line.lowest)]
    found = geometric_interval(ratios)
    return Judgement(
        found,
        above(found, SETTLED),
        f"At the end the loss is {found.mean:.2f} times that of rounds {begin} to {end}; a settled one would keep at "
        f"least {SETTLED} of it.",
    )


def fluctuations_persist(study: Study, reading: Reading) -> Judgement:
    line = study.line(8, reading)
    found = geometric_interval([variability(second_half(c.y)) for c in line.losses(line.lowest)])
    cause = (
        "the cause cannot be non-IID data, for the scripts' split is IID"
        if reading == "published"
        else "the split is non-IID here"
    )
    return Judgement(
        found, above(found, NOTICEABLE), f"From round to round the loss changes by {found.mean:.2%}; {cause}."
    )


def fluctuations_grow(study: Study, reading: Reading) -> Judgement:
    ratios = []
    for curve in study.line(9, reading).averaged():
        quarter = len(curve.y) // 4
        ratios.append(variability(curve.y[-quarter:]) / variability(curve.y[quarter : 2 * quarter]))
    found = geometric_interval(ratios)
    return Judgement(
        found,
        above(found, 1.0),
        f"Relative to the loss, the mean curve changes from round to round {found.mean:.2f} times as much in the last "
        "quarter as in the second.",
    )


def afl_ends_higher(study: Study, reading: Reading) -> Judgement:
    sync, afl = study.line(10, reading, "sync"), study.line(10, reading)
    pairs = zip(afl.averaged(), sync.averaged(), strict=True)
    found = geometric_interval([last_level(a.y) / last_level(s.y) for a, s in pairs])
    return Judgement(
        found,
        above(found, 1.0),
        f"After as many rounds AFL's loss is {found.mean:.2f} times the synchronous one's. Neither has settled, and "
        "AFL's rate is lowered over its local epochs: it is behind rather than stuck.",
    )


def afl_is_faster_in_time(study: Study, reading: Reading, panel: int) -> Judgement:
    lines = {line.arm.strategy: line for line in study.panel(11, panel)}
    fraction = lines["sync"].lowest

    def against_sync(strategy: str) -> Interval:
        return geometric_interval(
            cost_ratios(lines[strategy].losses(fraction, "elapsed"), lines["sync"].losses(fraction, "elapsed"))
        )

    found, mixing = against_sync("afl"), against_sync("afl_mixing")
    return Judgement(
        found,
        below(found, 1.0),
        f"At the same rate, Algorithm 1 (latest models) needs {found.mean:.2f} times the virtual time of synchronous "
        f"learning; with mixing by one half {mixing.mean:.2f} times {_ends(mixing)}.",
    )


def split_is_non_iid(study: Study, reading: Reading) -> Judgement:
    lines = [panel[0] for panel in (study.panel(14, 0), study.panel(14, 1))]
    different = [
        any(test.differs for test in experiment.measure_heterogeneity().tests)
        for line in lines
        for experiment, _ in line.experiments()
    ]
    share = float(np.mean(different))
    verdict: Verdict = "does not hold" if share < 0.5 else "holds"
    return Judgement(
        Interval(share, float("nan"), float("nan"), len(different)),
        verdict,
        f"In {sum(different)} of {len(different)} data sets a test can tell the scripts' split from a random one: it "
        "draws a Dirichlet vector per sample, which is a uniform draw.",
    )


def participation_is_fair(study: Study, reading: Reading) -> Judgement:
    line = study.panel(16, 0)[0]
    ratios = []
    for experiment, run in line.experiments():
        order, shares = np.argsort(seconds_per_ticket(experiment)), merge_shares(run)
        third = len(order) // 3
        ratios.append(float(shares[order[:third]].sum() / shares[order[-third:]].sum()))
    found = geometric_interval(ratios)
    return Judgement(
        found,
        below(found, FAIR),
        f"With clients of unequal speed (log-normal, spread 1) the fastest third is heard {found.mean:.2f} times as "
        f"often as the slowest; up to {FAIR} counts as fair.",
    )


def _ends(interval: Interval) -> str:
    return f"(95 %: {interval.low:.2f} to {interval.high:.2f})"
