"""What an update costs on Flower: python -m benchmarks.on_flower [--nodes 1] [--updates 8]. Needs asyncfed[flower].

The task itself is next to nothing, so what is measured is the way there and back. Takes some minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median

from asyncfed.flower import federation
from asyncfed.flower.local_federation import CONNECTION
from asyncfed.flower.new_app import write_app
from asyncfed.store.journal import Journal
from asyncfed.store.schema import REPORT


def seconds_per_update(file: Path) -> float:
    """The median time between two updates of the same node."""
    arrivals: dict[int, list[float]] = {}
    for event in Journal.open(file).event_rows():
        if event.kind == REPORT:
            arrivals.setdefault(event.require_client(), []).append(event.time)
    return median(later - earlier for times in arrivals.values() for earlier, later in pairwise(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--updates", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        app = Path(scratch) / "overhead"
        write_app(app, options.nodes)
        description = app / "experiment.toml"
        budget = f"updates = {options.updates * options.nodes}"
        description.write_text(description.read_text().replace("rounds = 10", budget))
        with federation(Path(scratch) / "federation", options.nodes) as started:
            for prefetch in (1, 2):
                file = started.folder / f"prefetch-{prefetch}.sqlite"
                started.flwr("run", str(app), CONNECTION, "--stream", "-c", f'prefetch={prefetch} journal="{file}"')
                seconds = seconds_per_update(file)
                print(f"{options.nodes} nodes, prefetch {prefetch}: {seconds:.1f} s an update of a node")


if __name__ == "__main__":
    main()
