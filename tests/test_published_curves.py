"""The published scripts' curves, and the paper's claim about stragglers: slow, for it takes many seeds to judge."""

import json
from pathlib import Path

import numpy as np
import pytest

from asyncfed import presets
from asyncfed.analysis.comparison import compare
from asyncfed.core.record import replace
from asyncfed.delays import heavy_tailed
from asyncfed.engine.evaluation import Evaluation

PUBLISHED = json.loads((Path(__file__).parent / "published_losses.json").read_text())
SEEDS = range(40)
FRACTIONS = ("0.2", "0.5", "0.9")


def losses(task, fraction):
    """The losses of both modes after each published round, by mode: an array with a row a seed.

    The early rounds come from short runs of their own: when a model is measured changes nothing else.
    """
    rounds = PUBLISHED["rounds"][task]
    found = {}
    for last, every in ((10, 1), (rounds[-1], 50)):
        base = presets.preset(task)(strategy="published", reading="published", fraction=float(fraction), rounds=last)
        modes = {m: presets.strategy_like(m, base.strategy) for m in PUBLISHED["losses"][task]}
        measured = replace(base, evaluation=Evaluation(every=every, distance=False))
        comparison = compare(measured, modes, SEEDS, workers=2)
        for mode in modes:
            for outcome in comparison.runs[mode].values():
                columns = (outcome.evaluations[name].tolist() for name in ("round", "first_client_loss"))
                found.setdefault((mode, outcome.seed), {}).update(zip(*columns, strict=True))
    return {mode: np.array([[found[mode, seed][r] for r in rounds] for seed in SEEDS]) for mode in modes}


@pytest.mark.slow
def test_nine_in_ten_published_losses_lie_within_the_range_over_seeds():
    outside, count = [], 0
    for task, of_modes in PUBLISHED["losses"].items():
        for fraction in FRACTIONS:
            of_seeds = losses(task, fraction)
            for mode, of_fractions in of_modes.items():
                low, high = of_seeds[mode].min(axis=0), of_seeds[mode].max(axis=0)
                for last, value, a, b in zip(PUBLISHED["rounds"][task], of_fractions[fraction], low, high, strict=True):
                    count += 1
                    if not a <= value <= b:
                        outside.append(f"{task} {mode} {fraction} round {last}: {value} not in {a:.4g} to {b:.4g}")
    print(f"{count - len(outside)} of {count} inside", *outside, sep="\n")
    assert count == 72
    assert len(outside) <= count // 10, outside


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["afl_mixing", "afl_delta_mean"])
def test_with_heavy_tailed_delays_asynchrony_is_faster_at_the_same_rate(aggregate):
    base = presets.regression(rounds=200, delays=heavy_tailed(shape=1.1))
    strategies = {name: presets.strategy_like(name, base.strategy, "same") for name in (aggregate, "sync")}
    comparison = compare(base, strategies, range(6), workers=2)
    times_faster = comparison.ratio("sync", aggregate, "elapsed")
    assert times_faster.n == 6
    assert times_faster.low > 1.0
