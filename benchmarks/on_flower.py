"""What an update costs on Flower: python -m benchmarks.on_flower [--before COMMIT] [--torch]. Needs asyncfed[flower].

The task itself is next to nothing, so what is measured is the way there and back. With `--before`, as many nodes again
run the code of that commit, in the same federation and the same run. Processor time is that of whole processes, so it
is worth something on a busy machine too; seconds are not. Takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean, median

from asyncfed.flower.local_federation import CONNECTION, Federation
from asyncfed.flower.new_app import write_app
from asyncfed.store.journal import Journal
from asyncfed.store.schema import REPORT
from benchmarks.before_after import ROOT, checkout

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.5

CLIENT = """
import atexit, os, time

BEGAN = time.process_time()
SPENT = [0.0]

from pathlib import Path

from flwr.clientapp import ClientApp
from asyncfed.flower import client_app

if os.environ["CODE"] == "before":
    {imports}
    made = client_app(Path(__file__).parent.parent / "experiment.toml", {functions})
else:
    made = client_app(Path(__file__).parent.parent / "experiment.toml", {names})
SPENT[0] = time.process_time() - BEGAN


class TimedApp(ClientApp):
    def __call__(self, message, context):
        began = time.process_time()
        reply = made(message, context)
        SPENT[0] += time.process_time() - began
        self.kind = message.metadata.message_type
        return reply


def write_down():
    with open(os.environ["CPU_LOG"], "a") as log:
        log.write(f"{{app.kind}} {{SPENT[0]}} {{time.process_time() - SPENT[0]}}\\n")


app = TimedApp()
atexit.register(write_down)
"""


def write_client(app: Path, torch: bool) -> None:
    """The client's app, which writes down what it spends: `before` as it had to be written, `after` by names."""
    [package] = [path.name for path in app.iterdir() if path.name.startswith("app_")]
    imports, functions, names = (
        f"from {package}.data import load_data",
        "data=load_data",
        f'data="{package}.data:load_data"',
    )
    if torch:
        imports += f"; from {package}.model import make_problem"
        functions += ", problem=make_problem"
        names += f', problem="{package}.model:make_problem"'
    text = CLIENT.format(imports=imports, functions=functions, names=names)
    (app / package / "client_app.py").write_text(text)


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Environment variables, for the processes that are started meanwhile."""
    old = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in old.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


class ProcessTimes:
    """Processor seconds of the long-running processes of a federation, by what they are; sampled until the end."""

    def __init__(self, home: Path) -> None:
        self._mark = f"FLWR_HOME={home}".encode()
        self.spent: dict[tuple[int, str, str], float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> ProcessTimes:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    environment = (entry / "environ").read_bytes().split(b"\0")
                    if self._mark not in environment:
                        continue
                    words = (entry / "cmdline").read_bytes().decode()
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                code = [word[5:].decode() for word in environment if word.startswith(b"CODE=")]
                self.spent[int(entry.name), _kind_of(words), *(code or ["server"])] = (
                    int(fields[11]) + int(fields[12])
                ) / TICKS

    def of(self, kind: str, code: str) -> float:
        """Processor seconds of all processes of this kind."""
        return sum(spent for (_, what, whose), spent in self.spent.items() if (what, whose) == (kind, code))


def _kind_of(words: str) -> str:
    kinds = ("node_worker", "flwr-clientapp", "flwr-serverapp", "flower-superlink", "flower-supernode")
    return next((kind for kind in (*kinds, "flower-superexec") if kind in words), "other")


def seconds_per_update(file: Path, clients: range) -> float:
    """The mean time between two updates of the same node; a median would see one of two that come together."""
    arrivals: dict[int, list[float]] = {client: [] for client in clients}
    for event in Journal.open(file).event_rows():
        if event.kind == REPORT and event.require_client() in arrivals:
            arrivals[event.require_client()].append(event.time)
    return mean((times[-1] - times[0]) / (len(times) - 1) for times in arrivals.values())


class MixedFederation(Federation):
    """The first `nodes` nodes run the first code, the next ones the second; each writes down what it spends."""

    def __init__(self, folder: Path, codes: dict[str, Path], nodes: int) -> None:
        super().__init__(folder, nodes * len(codes))
        self._codes = [code for code in codes.items() for _ in range(nodes)]

    def start_node(self, client: int) -> None:
        """Start the node with its code."""
        code, tree = self._codes[client]
        log = str(self.folder / f"{code}.cpu")
        with variables(PYTHONPATH=str(tree / "src"), CODE=code, CPU_LOG=log):
            super().start_node(client)


def report(here: Federation, codes: dict[str, Path], times: ProcessTimes, file: Path, nodes: int) -> None:
    """Print what each code has spent."""
    for place, code in enumerate(codes):
        lines = [line.split() for line in (here.folder / f"{code}.cpu").read_text().splitlines()]
        own = [float(spent) for kind, spent, _ in lines if kind == "train"]
        flower = [float(rest) for kind, _, rest in lines if kind == "train"]
        worker, node = times.of("node_worker", code), times.of("flower-supernode", code)
        seconds = seconds_per_update(file, range(place * nodes, (place + 1) * nodes))
        clients = sum(float(spent) + float(rest) for _, spent, rest in lines)
        print(f"{code}: {seconds:.1f} s an update of a node; processor seconds of a ClientApp, median of {len(own)}:")
        print(f"  AsyncFed {median(own):.3f}, Flower {median(flower):.3f}; in all {len(lines)} messages: ClientApps")
        print(f"  {clients:.1f}, workers {worker:.1f}, SuperNodes {node + times.of('flower-superexec', code):.1f}")
    link, app = (times.of(kind, "server") for kind in ("flower-superlink", "flwr-serverapp"))
    print(f"processor seconds in all: SuperLink {link:.1f}, ServerApp {app:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1, help="nodes with each code")
    parser.add_argument("--updates", type=int, default=8, help="updates of a node")
    parser.add_argument("--before", help="a commit or a folder whose code as many nodes again run")
    parser.add_argument("--torch", action="store_true", help="a PyTorch module in place of a linear model")
    parser.add_argument("--prefetch", type=int, default=1)
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a node compiles its sources once
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        codes = {} if options.before is None else {"before": stack.enter_context(checkout(options.before))}
        codes["after"] = ROOT
        count = options.nodes * len(codes)
        app = scratch / "overhead"
        write_app(app, count, options.torch)
        write_client(app, options.torch)
        description = app / "experiment.toml"
        description.write_text(description.read_text().replace("rounds = 10", f"updates = {options.updates * count}"))
        here = stack.enter_context(MixedFederation(scratch / "federation", codes, options.nodes))
        file = here.folder / "run.sqlite"
        settings = f'prefetch={options.prefetch} robust=false journal="{file}"'
        with ProcessTimes(here.home) as times:
            here.flwr("run", str(app), CONNECTION, "--stream", "-c", settings)
        print(f"{count} nodes, prefetch {options.prefetch}, load {os.getloadavg()[0]:.1f}")
        report(here, codes, times, file, options.nodes)


if __name__ == "__main__":
    main()
