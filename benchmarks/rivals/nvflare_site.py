"""What a site of NVFlare's simulator runs: `nvflare_workloads` gives it the data and a folder for its times.

There are as many sites as updates in flight; each round, a site plays one of the clients.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from time import perf_counter

import nvflare.client as flare
import torch

from benchmarks.rivals.task import load


class Perceptron(torch.nn.Sequential):
    """W3's network as a class: the server makes the model from its path and its arguments, kept under their names."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(torch.nn.Linear(features, 64), torch.nn.ReLU(), torch.nn.Linear(64, classes))
        self.features, self.classes = features, classes


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("data", "task", "times"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    flare.init()
    site = flare.get_site_name()
    task, draws = load(Path(options.data), options.task), random.Random(site)
    samples, module, loss = task.tensors(), task.module(), task.loss()
    with (Path(options.times) / site).open("w") as times:
        while flare.is_running():
            received = flare.receive()
            times.write(f"{received.current_round} {perf_counter()}\n")  # print is not itself in a site
            times.flush()
            module.load_state_dict({name: torch.as_tensor(value) for name, value in received.params.items()})
            x, y = draws.choice(samples)
            optimiser = torch.optim.SGD(module.parameters(), lr=task.rate)
            for _ in range(task.epochs):
                for rows in torch.randperm(len(x)).split(task.batch):
                    optimiser.zero_grad()
                    loss(module(x[rows]), y[rows]).backward()
                    optimiser.step()
            flare.send(flare.FLModel(params=module.state_dict(), meta={"NUM_STEPS_CURRENT_ROUND": len(x)}))


if __name__ == "__main__":
    main()
