"""How each claim is tested: from the runs of a figure, in one reading, to a number, a verdict and a reason."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from asyncfed.analysis.statistics import Interval, geometric_interval, independent_ratio, mean_interval
from asyncfed.presets import Reading
from asyncfed.reproduce.curve_statistics import (
    Verdict,
    above,
    below,
    compare_speed,
    cost_ratios,
    growth_of_variability,
    late_variability,
    linearity,
    matching_round,
)
from asyncfed.reproduce.figures import swept
from asyncfed.reproduce.published_curves import published_curves
from asyncfed.reproduce.run_lookup import Line, Study
from asyncfed.reproduce.run_measures import last_level, merge_shares, seconds_per_ticket

CLOSE_TO_OPTIMUM = 1.1
NEARLY_LINEAR = 0.99
PROPORTIONAL = 0.1
SETTLED = 0.9
NOTICEABLE = 0.01
FAIR = 1.1


class Assessment(NamedTuple):
    """The number with its interval, what it lets one say, and why."""

    interval: Interval
    verdict: Verdict
    reason: str


def delay_is_acceptable(study: Study, reading: Reading, figure: int) -> Assessment:
    """The largest delay spread of a run; the paper names no limit."""
    line = study.line(figure, reading)
    largest = mean_interval([spread.max() for spread in line.columns("delay_spread")])
    staleness = max(float(column.max()) for column in line.columns("staleness_max"))
    effect = f"at a penalty of 0.01 it lowers the rate by at most {largest.mean * 0.01 / (1 + largest.mean * 0.01):.2%}"
    drift = (
        f"what lets clients drift is staleness, here up to {staleness:.0f} versions"
        if reading == "text"
        else "in the scripts clients never download, so they drift apart whatever the delay"
    )
    return Assessment(largest, "undecided", f"The paper names no threshold; {effect}, and {drift}.")


def reaches_the_optimum(study: Study, reading: Reading) -> Assessment:
    """The objective at the end over the least possible one, limit `CLOSE_TO_OPTIMUM`."""
    ratios = []
    for experiment, run in study.line(2, reading).experiments():
        problem = experiment.problem()
        optimum = problem.optimum()
        least = problem.evaluate(optimum)["objective"] if optimum is not None else float("nan")
        ratios.append(last_level(run.outcome.objective) / least)
    found = geometric_interval(ratios)
    return Assessment(
        found,
        below(found, CLOSE_TO_OPTIMUM),
        f"The objective ends at {found.mean:.3f} times the least possible; up to {CLOSE_TO_OPTIMUM} counts as "
        "converged.",
    )


WALL_CLOCK = {"published": "cumulative_longest", "text": "cumulative_spread"}


def wall_clock_is_linear(study: Study, reading: Reading) -> Assessment:
    """R² of a straight line through the cumulative wall-clock time, limit `NEARLY_LINEAR`."""
    found = mean_interval([linearity(y) for y in study.line(3, reading).columns(WALL_CLOCK[reading])])
    whose, words = ("scripts", "sum of longest") if reading == "published" else ("text", "sum of (longest - shortest)")
    return Assessment(
        found,
        above(found, NEARLY_LINEAR),
        f"By the definition of the {whose} ({words}); a sum of rounds whose "
        "delays keep their distribution is nearly linear whatever the algorithm.",
    )


def energy_follows_wall_clock(study: Study, reading: Reading) -> Assessment:
    """The relative standard deviation of energy over wall-clock time along a run, limit `PROPORTIONAL`."""
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
    return Assessment(found, below(found, PROPORTIONAL), reason)


def _after_start(y: np.ndarray) -> np.ndarray:
    """Without the first tenth, where a sum has too few terms for its ratios to mean much."""
    return y[len(y) // 10 :]


def loss_decreases(study: Study, reading: Reading, figure: int) -> Assessment:
    """The loss at the end over that of round 1, for the fraction that gains least; limit 1."""
    line = study.line(figure, reading)
    of_fractions = [line.losses(fraction) for fraction in line.arm.fractions]
    worst = [max(last_level(c.y) / c.y[0] for c in of_seed) for of_seed in zip(*of_fractions, strict=True)]
    rising = np.mean([np.mean(np.diff(c.y) > 0) for curves in of_fractions for c in curves])
    found = geometric_interval(worst)
    return Assessment(
        found,
        below(found, 1.0),
        f"From one round to the next the loss rose in {rising:.0%} of the rounds; what is tested is where it ends, "
        "with the fraction that gains least.",
    )


def more_clients_are_faster(study: Study, reading: Reading, figure: int) -> Assessment:
    """Rounds that the highest fraction needs over those of the lowest one; limit 1."""
    line = study.line(figure, reading)
    high, low = line.highest, line.lowest
    per_round = geometric_interval(cost_ratios(line.losses(high), line.losses(low)))
    in_time = geometric_interval(cost_ratios(line.losses(high, "elapsed"), line.losses(low, "elapsed")))
    updates = per_round.mean * high / low
    return Assessment(
        per_round,
        compare_speed(per_round, in_time),
        f"{high:.0%} of the clients need {per_round.mean:.2f} times the rounds of {low:.0%}, {in_time.mean:.2f} times "
        f"the virtual time {_ends(in_time)} and {updates:.2f} times the client updates.",
    )


def few_clients_vary_more(study: Study, reading: Reading, figure: int) -> Assessment:
    """Change of the loss from round to round with the lowest fraction over that with the highest; limit 1."""
    line = study.line(figure, reading)
    few, many = (_late_changes(line, (fraction,)) for fraction in (line.lowest, line.highest))
    published = _published_changes(line, line.lowest), _published_changes(line, line.highest)
    return _more_variable(
        few,
        many,
        reading,
        published,
        f"the loss with {line.lowest:.0%}",
        f"with {line.highest:.0%}",
    )


def _late_changes(line: Line, fractions: Sequence[float]) -> np.ndarray:
    """Seed by seed, the relative change from round to round in the second half, geometric mean over fractions."""
    logs = [[np.log(late_variability(curve.y)) for curve in line.losses(fraction)] for fraction in fractions]
    return np.asarray(np.exp(np.mean(logs, axis=0)))


def _published_changes(line: Line, *fractions: float) -> float:
    """The same of the published curves with these fractions; NaN if there is none."""
    known = [published_curves().get((line.arm.preset, line.arm.strategy, fraction)) for fraction in fractions]
    changes = [np.log(late_variability(curve)) for curve in known if curve is not None]
    return float(np.exp(np.mean(changes))) if changes else float("nan")


def _more_variable(
    ones: np.ndarray, others: np.ndarray, reading: Reading, published: tuple[float, float], one: str, other: str
) -> Assessment:
    """Whether one loss changes more from round to round than another.

    Seeds are pairs in the text's reading. In the published one they are not: each run of the scripts drew data of its
    own, and how much its measured loss changes depends on how many rows the first client got.
    """
    paired = geometric_interval(ones / others)
    found = paired if reading == "text" else independent_ratio(ones, others)
    reason = (
        f"In the second half of the run {one} changes from round to round {found.mean:.2f} times as much as {other}."
    )
    if reading == "published":
        reason += (
            f" On the same data the interval is narrower {_ends(paired)}, but each run of the scripts has its own, and "
            "its loss changes the more the fewer rows the first client's last batch happens to hold."
        )
        if isfinite(published[0] / published[1]):
            reason += f" On the published curves the ratio is {published[0] / published[1]:.2f}."
    return Assessment(found, above(found, 1.0), reason)


def synchronous_is_faster(study: Study, reading: Reading, figure: int) -> Assessment:
    """Rounds that synchronous learning needs over those of AFL; limit 1."""
    sync, afl = study.line(figure, reading, "sync"), study.line(figure, reading)
    per_round = geometric_interval(cost_ratios(sync.averaged(), afl.averaged()))
    in_time = geometric_interval(cost_ratios(sync.averaged("elapsed"), afl.averaged("elapsed")))
    why = "; both wait for their slowest client" if reading == "published" else ""
    return Assessment(
        per_round,
        compare_speed(per_round, in_time),
        f"Synchronous learning needs {per_round.mean:.2f} times the rounds of AFL and {in_time.mean:.2f} times its "
        f"virtual time {_ends(in_time)}{why}; its rate is not lowered, AFL's is.",
    )


def settles_at_a_hundredth(study: Study, reading: Reading) -> Assessment:
    """The mean squared error at the end of synchronous learning; up to twice 10⁻² counts as around it."""
    factor = 1.0 if reading == "published" else 2.0
    found = geometric_interval([factor * last_level(c.y) for c in study.line(6, reading, "sync").averaged()])
    verdict = below(found, 2 * 0.01)  # within a factor of two counts as around
    return Assessment(
        found,
        verdict,
        f"It settles at {found.mean:.3g} in mean squared error: the data's noise has variance 0.04, and no model gets "
        "below it.",
    )


def matches_after_200_rounds(study: Study, reading: Reading) -> Assessment:
    """The round from which AFL's loss stays within 10 % of that of synchronous learning; up to 300 counts."""
    sync, afl = study.line(6, reading, "sync"), study.line(6, reading)
    rounds = [matching_round(a.y, s.y) for a, s in zip(afl.averaged(), sync.averaged(), strict=True)]
    found, limit = mean_interval(rounds), 300 / afl.runs.shorter
    if found.n < len(rounds):
        return Assessment(
            found, "does not hold", f"In {len(rounds) - found.n} of {len(rounds)} seeds AFL ends above it."
        )
    return Assessment(
        found,
        below(found, limit),
        f"From round {found.mean:.0f} on AFL's mean loss stays within 10 % of the synchronous one; up to {limit:.0f} "
        "counts as about 200.",
    )


def afl_varies_more(study: Study, reading: Reading, figure: int) -> Assessment:
    """Change of AFL's loss from round to round over that of synchronous learning; limit 1."""
    afl, sync = study.line(figure, reading), study.line(figure, reading, "sync")
    fractions = afl.arm.fractions
    return _more_variable(
        _late_changes(afl, fractions),
        _late_changes(sync, fractions),
        reading,
        (_published_changes(afl, *fractions), _published_changes(sync, *fractions)),
        "AFL's loss",
        "the synchronous one's",
    )


def svm_is_more_sensitive(study: Study, reading: Reading) -> Assessment:
    """Growth of the SVM's loss with the delays over that of the regression's; limit 1."""
    worse = {}
    for line in study.panel(15, 0):
        levels = swept(line.arm, line.panel.y, line.runs)
        worse[line.arm.preset] = levels / levels[:, :1]
    ratios = worse["svm"] / worse["regression"]
    at = len(ratios[0]) // 2
    found, far = geometric_interval(ratios[:, at]), geometric_interval(ratios[:, -1])
    agreed = above(found, 1.0) if above(found, 1.0) == above(far, 1.0) else "undecided"
    return Assessment(
        found,
        agreed,
        f"With delays 100 times the laptop's the SVM's loss grows {found.mean:.3f} times as much as the regression's; "
        f"with 10,000 times, {far.mean:.3g} times. At the laptop's own delays neither is affected.",
    )


def svm_settles(study: Study, reading: Reading) -> Assessment:
    """The loss at the end over that of rounds 250 to 300, limit `SETTLED`."""
    line = study.line(8, reading)
    begin, end = 250 // line.runs.shorter, 300 // line.runs.shorter
    ratios = [last_level(c.y) / float(np.exp(np.mean(np.log(c.y[begin:end])))) for c in line.losses(line.lowest)]
    found = geometric_interval(ratios)
    return Assessment(
        found,
        above(found, SETTLED),
        f"At the end the loss is {found.mean:.2f} times that of rounds {begin} to {end}; a settled one would keep at "
        f"least {SETTLED} of it.",
    )


def fluctuations_persist(study: Study, reading: Reading) -> Assessment:
    """The relative change of the loss from round to round in the second half, limit `NOTICEABLE`."""
    line = study.line(8, reading)
    found = geometric_interval(_late_changes(line, (line.lowest,)))
    published = _published_changes(line, line.lowest)
    cause = (
        "the cause cannot be non-IID data, for the scripts' split is IID"
        if reading == "published"
        else "the split is non-IID here"
    )
    curve = f" On the published curve it changes by {published:.2%}." if isfinite(published) else ""
    return Assessment(
        found, above(found, NOTICEABLE), f"From round to round the loss changes by {found.mean:.2%}; {cause}.{curve}"
    )


def fluctuations_grow(study: Study, reading: Reading) -> Assessment:
    """The relative change from round to round in the last quarter over that in the second; limit 1."""
    found = geometric_interval([growth_of_variability(curve.y) for curve in study.line(9, reading).averaged()])
    return Assessment(
        found,
        above(found, 1.0),
        f"Relative to the loss, the mean curve changes from round to round {found.mean:.2f} times as much in the last "
        "quarter as in the second.",
    )


def afl_ends_higher(study: Study, reading: Reading) -> Assessment:
    """AFL's loss at the end over that of synchronous learning; limit 1."""
    sync, afl = study.line(10, reading, "sync"), study.line(10, reading)
    pairs = zip(afl.averaged(), sync.averaged(), strict=True)
    found = geometric_interval([last_level(a.y) / last_level(s.y) for a, s in pairs])
    return Assessment(
        found,
        above(found, 1.0),
        f"After as many rounds AFL's loss is {found.mean:.2f} times the synchronous one's. Neither has settled, and "
        "AFL's rate is lowered over its local epochs: it is behind rather than stuck.",
    )


def afl_is_faster_in_time(study: Study, reading: Reading, panel: int) -> Assessment:
    """Virtual time that AFL needs over that of synchronous learning, at the same rate; limit 1."""
    lines = {line.arm.strategy: line for line in study.panel(11, panel)}
    fraction = lines["sync"].lowest

    def against_sync(strategy: str) -> Interval:
        return geometric_interval(
            cost_ratios(lines[strategy].losses(fraction, "elapsed"), lines["sync"].losses(fraction, "elapsed"))
        )

    found, mixing = against_sync("afl"), against_sync("afl_mixing")
    return Assessment(
        found,
        below(found, 1.0),
        f"At the same rate, Algorithm 1 (latest models) needs {found.mean:.2f} times the virtual time of synchronous "
        f"learning; with mixing by one half {mixing.mean:.2f} times {_ends(mixing)}.",
    )


def split_is_non_iid(study: Study, reading: Reading) -> Assessment:
    """The share of data sets in which a test finds that the published split is not random; limit one half."""
    lines = [panel[0] for panel in (study.panel(14, 0), study.panel(14, 1))]
    different = [
        any(test.differs for test in experiment.measure_heterogeneity().tests)
        for line in lines
        for experiment, _ in line.experiments()
    ]
    share = float(np.mean(different))
    verdict: Verdict = "does not hold" if share < 0.5 else "holds"
    return Assessment(
        Interval(share, float("nan"), float("nan"), len(different)),
        verdict,
        f"In {sum(different)} of {len(different)} data sets a test distinguishes the scripts' split from a random one: "
        "it draws a Dirichlet vector per sample, which is a uniform draw.",
    )


def participation_is_fair(study: Study, reading: Reading) -> Assessment:
    """Merges of the fastest third of the clients over those of the slowest third, limit `FAIR`."""
    line = study.panel(16, 0)[0]
    ratios = []
    for experiment, run in line.experiments():
        order, shares = np.argsort(seconds_per_ticket(experiment)), merge_shares(run)
        third = len(order) // 3
        ratios.append(float(shares[order[:third]].sum() / shares[order[-third:]].sum()))
    found = geometric_interval(ratios)
    return Assessment(
        found,
        below(found, FAIR),
        f"With clients of unequal speed (log-normal, spread 1) the fastest third has {found.mean:.2f} times as "
        f"many merges as the slowest; up to {FAIR} counts as fair.",
    )


def _ends(interval: Interval) -> str:
    return f"(95 %: {interval.low:.2f} to {interval.high:.2f})"
