"""What codecs cost: encoding and decoding a change of 1e6 parameters, on one core, against copying it."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from asyncfed.core.types import Uplink
from asyncfed.uplinks import QSGD, Cast, ErrorFeedback, LowRank, RandK, Sign, TopK, Whole, Zstandard
from asyncfed.uplinks.chain import message_size
from benchmarks.measure import best_in_turn
from benchmarks.outcome import Line, Outcome

GOAL_MS = 20.0
WITH_GOAL = ("top-k 1 %", "QSGD, 7 levels")


def codecs(num_params: int) -> dict[str, Uplink]:
    """The codecs that are timed; low-rank ones see one square matrix, and what is left over as a vector."""
    side = int(num_params**0.5)
    shapes = ((side, side), (num_params - side * side,))
    made: dict[str, Uplink] = {
        "whole": Whole(),
        "top-k 1 %": TopK(fraction=0.01),
        "top-k 1 %, error feedback": ErrorFeedback(codec=TopK(fraction=0.01)),
        "top-k 50 %": TopK(fraction=0.5),
        "rand-k 1 %": RandK(fraction=0.01),
        "QSGD, 7 levels": QSGD(levels=7),
        "QSGD, 1 level, one bucket": QSGD(levels=1, bucket=0),
        "sign": Sign(),
        "bfloat16": Cast(to="bfloat16"),
        "float16": Cast(to="float16"),
        "rank 2": LowRank(rank=2, shapes=shapes),
    }
    if find_spec("zstandard") is not None:
        made["QSGD, 1 level, zstandard"] = Zstandard(codec=QSGD(levels=1, bucket=0))
    return made


def measure(num_params: int = 1_000_000, repeats: int = 15) -> Outcome:
    """The least CPU time of each codec; the goal is absolute, and a copy of the change is beside it for scale."""
    change = np.random.default_rng(0).normal(size=num_params)
    lines, numbers = [], {}
    for dtype in (np.float32, np.float64):
        vector = change.astype(dtype)
        jobs: dict[str, Callable[[], Any]] = {"copy": vector.copy}
        sizes = {}
        for name, codec in codecs(num_params).items():
            jobs[f"{name}: encode"], jobs[f"{name}: decode"], sizes[name] = _jobs(codec, vector)
        times = {name: 1e3 * spent.cpu for name, spent in best_in_turn(jobs, repeats).items()}
        numbers[np.dtype(dtype).name] = {"ms": times, "bytes": sizes}
        for name in jobs:
            if name == "copy":
                continue
            codec_name = name.rpartition(":")[0]
            has_goal = codec_name in WITH_GOAL
            measured = f"{times[name]:.2f} ms, copy {times['copy']:.2f} ms; {sizes[codec_name]:,} bytes"
            goal, met = (f"<= {GOAL_MS:g} ms", times[name] <= GOAL_MS) if has_goal else ("", None)
            what = f"{name} / copy, {np.dtype(dtype).name}"
            lines.append(Line(what, measured, times[name] / max(times["copy"], 1e-6), goal, met))
    return Outcome(lines, {**numbers, "num_params": num_params})


def _jobs(codec: Uplink, vector: np.ndarray) -> tuple[Callable[[], Any], Callable[[], Any], int]:
    memory = codec.init(vector.size, vector.dtype)
    message, _ = codec.encode(memory, vector, 7)
    assert message is not None
    return (
        lambda: codec.encode(memory, vector, 7),
        lambda: codec.decode(message, vector.size, vector.dtype),
        message_size(message),
    )
