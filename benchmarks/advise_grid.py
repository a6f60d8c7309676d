"""How good is what `asyncfed advise` recommends? Compared with the best of an exhaustive grid over the same space.

    python -m benchmarks.advise_grid stragglers --out-dir runs/advise_grid

All points of the grid are simulated with one held-out seed for three times as long as the recommended settings need;
the best of them are then simulated over the whole budget with all held-out seeds, and so are the recommended settings.
Held-out seeds are neither those of the search nor those of its finalists. What was simulated is kept in the folder.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

import asyncfed as af
from asyncfed.advice.advisor import STRATEGIES
from asyncfed.advice.cached_trials import TrialCache, TrialRunner, open_trial_pool
from asyncfed.advice.scoring import score
from asyncfed.advice.search_space import search_space
from asyncfed.analysis.statistics import geometric_interval
from asyncfed.core.record import to_json
from asyncfed.presets import delays_named, strategy_like
from asyncfed.runs.cores import usable_cores

FIRST_SEED = 2000
LONGER = 3.0
KEPT = 24


def heavy_federation(delays: str) -> af.Experiment:
    """100 clients with skewed targets and about 70 training rows each."""
    return af.Experiment(
        name=delays,
        num_clients=100,
        data=af.data.PaperRegression(num_samples=10_000),
        split=af.data.QuantileDirichlet(concentration=0.5, min_size=2),
        holdout=af.data.Holdout(),
        strategy=af.strategies.FedAsync(concurrency=50, work=af.Work(learning_rate=0.01)),
        delays=delays_named(delays),
    )


def main() -> None:
    """Advise, simulate the grid, print how far the recommendation is from the best of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=["stragglers", "heavy_tailed", "flights"])
    parser.add_argument("--out-dir", type=Path, default=Path("runs/advise_grid"))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--progress", type=float, default=0.95)
    given = parser.parse_args()
    names = given.strategies.split(",")
    folder = given.out_dir / given.problem
    if given.problem == "flights":
        experiment, _, problem = af.presets.prepare_table("flights")
    else:
        experiment = heavy_federation(given.problem)
        problem = experiment.problem()
    advice = af.advise(
        experiment,
        problem=problem,
        strategies=names,
        workers=given.workers,
        progress=given.progress,
        out_dir=folder,
    )
    print(advice)
    seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
    experiment = af.replace(advice.experiment, stopping=None)
    spaces = [
        search_space(name, strategy_like(name, experiment.strategy, "same"), problem.num_examples) for name in names
    ]
    grid = {
        to_json(strategy): strategy
        for space in spaces
        for levels in product(*(range(len(choice.levels)) for choice in space.choices))
        for strategy in [space.at(levels)]
    }
    recommended = advice.finalists[advice.winner].strategy
    grid[to_json(recommended)] = recommended
    short = min(advice.budget, LONGER * float(np.mean(advice.costs(advice.winner, "elapsed"))))
    print(f"{len(grid)} points, {short:.4g} virtual seconds each, then {KEPT} over {advice.budget:.4g}")
    with open_trial_pool(given.workers, problem) as pool:
        runner = TrialRunner(TrialCache(folder / "grid", problem.fingerprint()), pool, len(grid))

        def scores(points, budget, over):
            """The score of each point over these seeds."""
            wanted = [
                af.replace(experiment, strategy=grid[point], seed=seed, budget=af.Budget(elapsed=budget))
                for point in points
                for seed in over
            ]
            runs = runner.run(wanted)
            of_point = [runs[i : i + len(over)] for i in range(0, len(runs), len(over))]
            return of_point, [score(each, advice.target, advice.aim, budget, whole=True) for each in of_point]

        points = list(grid)
        _, ranks = scores(points, short, seeds[:1])
        best = [points[i] for i in np.argsort(ranks)[:KEPT]]
        best = list(dict.fromkeys([*best, to_json(recommended)]))
        runs, ranks = scores(best, advice.budget, seeds)
    costs = [
        np.exp([score([run], advice.target, advice.aim, advice.budget, whole=True) for run in each]) for each in runs
    ]
    own = costs[best.index(to_json(recommended))]
    for i in np.argsort(ranks)[:5]:
        print(f"{np.exp(ranks[i]):.4g}  {best[i]}")
    top = costs[int(np.argmin(ranks))]
    ratio = geometric_interval(own / top)
    print(f"recommended {np.exp(np.mean(np.log(own))):.4g}, best of the grid {np.exp(np.mean(np.log(top))):.4g}")
    print(f"ratio {ratio.mean:.3f} (95 % interval {ratio.low:.3f} to {ratio.high:.3f}), {len(own)} held-out seeds")


if __name__ == "__main__":
    main()
