"""The limit: W1 to W3 in a bare event loop around hand-vectorised C, on one thread.

A heap of virtual times, a draw of the next client and one call of C an update: no strategies, no journal, no checks, no
energy, no evaluation. It is what the hardware allows when nothing else is asked for, not a product.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals.protocol import Clock, answer
from benchmarks.rivals.task import Task

ROW = 12  # doubles: ten features, 1 for the bias, 0
TORCH_PARTS = ("0.weight", "0.bias", "2.weight", "2.bias")


def compiled(source: str, folder: Path) -> ctypes.PyDLL:
    """The C file beside this one, with every instruction this processor has. A call keeps the interpreter's lock."""
    library = folder / f"{source}.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", str(library), str(Path(__file__).with_name(f"{source}.c")), "-lm"], check=True)
    return ctypes.PyDLL(str(library))


def event_loop(arrive: Any, start: Any, num_clients: int, in_flight: int, updates: int) -> None:
    """Tickets come back after log-normal delays; each is merged and goes to a client drawn from the idle ones."""
    rng = np.random.default_rng(0)
    delays = rng.lognormal(sigma=0.5, size=updates + in_flight).tolist()
    draws = rng.integers(max(1, num_clients - in_flight), size=updates).tolist()
    keys = rng.integers(2**63, size=updates + in_flight).tolist()
    at_work, idle = list(range(in_flight)), list(range(in_flight, num_clients))
    for ticket in at_work:
        start(ticket, ticket, keys.pop())
    heap = [(delays.pop(), ticket) for ticket in range(in_flight)]
    heapify(heap)
    for draw, delay, key in zip(draws, delays, keys, strict=True):
        now, ticket = heap[0]
        client, idle[draw] = idle[draw], at_work[ticket]
        at_work[ticket] = client
        arrive(ticket, client, key)
        heapreplace(heap, (now + delay, ticket))


def prepared(task: Task) -> tuple[ctypes.PyDLL, Any]:
    """The compiled loop's C side with this task in it, and the data it points at, which must outlive it."""
    with tempfile.TemporaryDirectory() as folder:
        library = compiled("limit_network" if task.is_network else "limit_linear", Path(folder))
    library.start.argtypes = library.arrive.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_uint64]
    library.start.restype = library.arrive.restype = None
    return library, (_set_up_network if task.is_network else _set_up_linear)(library, task)


def module_of(library: ctypes.PyDLL, task: Task) -> Any:
    """The server's model as PyTorch has it."""
    return (_network_of if task.is_network else _linear_of)(library, task)


def run(task: Task, updates: int, clock: Clock) -> Any:
    library, kept = prepared(task)
    event_loop(library.arrive, library.start, task.num_clients, task.in_flight, max(updates // 10, 1))  # warm caches
    clock.merged(0)
    event_loop(library.arrive, library.start, task.num_clients, task.in_flight, updates)
    clock.merged(updates)
    module = module_of(library, task)
    library.tear_down()
    del kept
    return module


def _set_up_linear(library: ctypes.PyDLL, task: Task) -> Any:
    x = np.zeros((*task.x.shape[:2], ROW))
    x[:, :, : task.x.shape[2]], x[:, :, task.x.shape[2]] = task.x, 1.0
    y = np.ascontiguousarray(task.y, np.float64)
    sizes = (task.num_clients, task.x.shape[1], task.in_flight, task.epochs, task.batch)
    library.set_up.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_long] * 5 + [ctypes.c_double]
    _check(library.set_up(x.ctypes.data, y.ctypes.data, *sizes, 2 * task.rate))  # the C side's loss has its 1/2
    return x, y


def _linear_of(library: ctypes.PyDLL, task: Task) -> Any:
    import torch

    library.model.restype = ctypes.POINTER(ctypes.c_double)
    params = np.ctypeslib.as_array(library.model(), (ROW,))[: task.x.shape[2] + 1]
    weight, bias = torch.tensor(params[None, :-1]).float(), torch.tensor(params[-1:]).float()
    module = task.module()
    module.load_state_dict({"weight": weight, "bias": bias})
    return module


def _set_up_network(library: ctypes.PyDLL, task: Task) -> Any:
    weights = {name: value.numpy() for name, value in task.module().state_dict().items()}
    parts = [weights["0.weight"].T, *(weights[name] for name in TORCH_PARTS[1:])]
    model = np.concatenate([part.ravel() for part in parts]).astype(np.float32)
    x, y = np.ascontiguousarray(task.x, np.float32), np.ascontiguousarray(task.y, np.int64)
    sizes = (task.num_clients, task.x.shape[1], task.in_flight, task.epochs, task.batch)
    library.set_up.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_long] * 5 + [ctypes.c_double]
    _check(library.set_up(x.ctypes.data, y.ctypes.data, model.ctypes.data, *sizes, task.rate))
    return x, y


def _network_of(library: ctypes.PyDLL, task: Task) -> Any:
    import torch

    module = task.module()
    shapes = [tuple(value.shape) for value in module.state_dict().values()]
    shapes[0] = shapes[0][::-1]
    sizes = [int(np.prod(shape)) for shape in shapes]
    library.model.restype = ctypes.POINTER(ctypes.c_float)
    flat = np.ctypeslib.as_array(library.model(), (sum(sizes),)).copy()
    parts = [part.reshape(shape) for part, shape in zip(np.split(flat, np.cumsum(sizes)[:-1]), shapes, strict=True)]
    parts[0] = parts[0].T
    state = {name: torch.tensor(part) for name, part in zip(TORCH_PARTS, parts, strict=True)}
    module.load_state_dict(state)
    return module


def _check(status: int) -> None:
    if status:
        raise MemoryError("the C side could not set up its arrays")


if __name__ == "__main__":
    answer("numpy", {"w1": 40_000, "w2": 400_000, "w3": 8_000}, run, others=())
