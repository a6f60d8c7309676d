"""How good is what `asyncfed advise` recommends? Compared with the best of an exhaustive grid over the same space.

    python -m benchmarks.advise_grid stragglers --out-dir runs/advise_grid

All points of the grid are simulated with one seed, for three times as long as the recommended settings need. Then the
best are raced: fewer of them with more seeds, see `--race`. The best five at the end, and the recommended settings, are
simulated over the whole budget with seeds that neither the search nor the race has seen, so that neither has been
chosen by them. What was simulated is kept in the folder.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np

import asyncfed as af
from asyncfed.advice.advisor import STRATEGIES
from asyncfed.advice.cached_trials import TrialCache, TrialRunner, open_trial_pool
from asyncfed.advice.scoring import AXIS_OF, cost_of_target, score
from asyncfed.advice.search_space import search_space
from asyncfed.analysis.statistics import geometric_interval
from asyncfed.core.record import to_json
from asyncfed.presets import delays_named, strategy_like
from asyncfed.runs.cores import usable_cores

FIRST_RACE_SEED = 2000
FIRST_SEED = 3000
"""Far from the seeds of the search, of its race and of its finalists."""

LONGER = 3.0
RACE = "400x3,100x12,24x48"
"""After one seed for every point: how many of the best go on, and with how many seeds."""

SHOWN = 5


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
    parser.add_argument("--grid-strategies", help="whose points are simulated; without it, all")
    parser.add_argument("--race", default=RACE, help="points x seeds after one seed for every point (%(default)s)")
    parser.add_argument("--seeds", type=int, default=64)
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
    experiment = af.replace(advice.experiment, stopping=None)
    spaces = [
        search_space(name, strategy_like(name, experiment.strategy, "same"), problem.num_examples)
        for name in (given.grid_strategies or given.strategies).split(",")
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
    print(f"{len(grid)} points, {short:.4g} virtual seconds each; the race goes on with {given.race}", flush=True)
    with open_trial_pool(given.workers, problem) as pool:
        runner = TrialRunner(TrialCache(folder / "grid", problem.fingerprint()), pool, len(grid))

        def simulate(points, budget, seeds):
            """The runs of each point, one for each seed."""
            wanted = [
                af.replace(experiment, strategy=grid[point], seed=seed, budget=af.Budget(elapsed=budget))
                for point in points
                for seed in seeds
            ]
            runs = runner.run(wanted)
            return [runs[i : i + len(seeds)] for i in range(0, len(runs), len(seeds))]

        points = list(grid)
        rungs = [tuple(map(int, rung.split("x"))) for rung in given.race.split(",")]
        for kept, num_seeds in [(len(points), 1), *rungs]:
            points = points[:kept]
            runs = simulate(points, short, range(FIRST_RACE_SEED, FIRST_RACE_SEED + num_seeds))
            means = [score(of_one, advice.target, advice.aim, short, whole=False) for of_one in runs]
            order = np.argsort(means, kind="stable")
            points = [points[i] for i in order]
            print(f"{len(points)} points, {num_seeds} seeds: best {np.exp(means[order[0]]):.4g}", flush=True)
            if to_json(recommended) in points:
                print(f"the recommended settings are number {points.index(to_json(recommended)) + 1}")
        seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
        own, *others = simulate([to_json(recommended), *points[:SHOWN]], advice.budget, seeds)

    def costs(runs):
        """What reaching the target cost with each seed; where it was missed, the whole budget."""
        found = np.array([cost_of_target(run, advice.target.level, AXIS_OF[advice.aim]) for run in runs])
        return np.where(np.isnan(found), advice.budget, found)

    print(f"recommended {np.exp(np.log(costs(own)).mean()):.4g}  {to_json(recommended)}")
    for point, other in zip(points, others, strict=False):
        ratio = geometric_interval(costs(own) / costs(other))
        mean = np.exp(np.log(costs(other)).mean())
        print(f"{mean:.4g}, ratio {ratio.mean:.3f} ({ratio.low:.3f} to {ratio.high:.3f})  {point}")
    print(f"Ratios of what is recommended to the best of the race; {given.seeds} held-out seeds, 95 % intervals.")


if __name__ == "__main__":
    main()
