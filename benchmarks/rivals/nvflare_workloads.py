"""W1 to W3 in NVFlare's simulator: federated averaging by its PyTorch recipe, each site a process.

Every site needs a process of its own with PyTorch in it (with fewer, the simulator starts and stops them all the time),
so W2 and W3 have fewer sites than updates in flight.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from nvflare.app_opt.pt.recipes.fedavg import FedAvgRecipe
from nvflare.recipe.sim_env import SimEnv

from benchmarks.rivals import nvflare_site
from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task

MOST_SITES = 5


def run(task: Task, updates: int, clock: Clock) -> Any:
    sites = min(task.in_flight, MOST_SITES)
    module = task.module()
    if task.is_network:
        module = nvflare_site.Perceptron(module[0].in_features, module[2].out_features)
    with tempfile.TemporaryDirectory() as scratch:
        times = Path(scratch) / "times"
        times.mkdir()
        recipe = FedAvgRecipe(
            name=task.name,
            model=module,
            min_clients=sites,
            num_rounds=max(3, updates // sites),
            train_script=nvflare_site.__file__,
            train_args=f"--data {task.folder} --task {task.name} --times {times}",
        )
        recipe.execute(SimEnv(num_clients=sites, num_threads=sites, workspace_root=scratch))
        for begun in _round_starts(times)[1:]:
            clock.merged(sites, at=begun)
        (saved,) = Path(scratch).rglob("FL_global_model.pt")
        module.load_state_dict(torch.load(saved, weights_only=False)["model"])
    return module


def _round_starts(times: Path) -> list[float]:
    """When the first site got each round's model: the round before it was merged then."""
    starts: dict[int, list[float]] = defaultdict(list)
    for file in times.iterdir():
        for line in file.read_text().splitlines():
            number, time = line.split()
            starts[int(number)].append(float(time))
    return [min(starts[number]) for number in sorted(starts)]


if __name__ == "__main__":
    answer("nvflare", {"w1": 40, "w2": 100, "w3": 100}, run, in_one_process=False)
