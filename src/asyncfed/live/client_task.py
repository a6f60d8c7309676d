"""What a client does with a task, whichever engine brought it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from asyncfed.core.record import UNSET
from asyncfed.live.machine_entropy import draw_noise_key
from asyncfed.live.wire import (
    CORRECTION,
    DIFFERENCE,
    MODEL,
    Arrays,
    Parts,
    Result,
    Task,
    WireError,
    describe_parts,
    dtype_name,
)
from asyncfed.problems.client_measurements import asks_for_measurements, measure_client
from asyncfed.problems.protocol import Array, ClientShard, MeasuresLoss, MeasuresRowLosses
from asyncfed.uplinks.chain import apply_difference, decode_message, encode_change, init_memory
from asyncfed.uplinks.client_memory import ClientMemory

OWN_MODEL = "own_model"
"""The name under which a client remembers its own model, beside what its uplinks remember."""

REFERENCE = "start"
"""The name under which it remembers, with a downlink, the model that it started from."""

FirstModel: TypeAlias = Callable[[], np.ndarray]
"""Gives the model that a client draws for itself, for work that starts from the client's own."""


def work_on(
    shard: ClientShard,
    task: Task,
    arrays: Arrays,
    memory: ClientMemory,
    clock: Callable[[], float],
    pause: Callable[[float], None] | None = None,
    first_model: FirstModel | None = None,
) -> tuple[Result, Arrays]:
    """Train as the task says. Besides what is returned here, nothing leaves the client.

    Args:
        shard: the client's own data, and how it trains.
        task: what is to be done.
        arrays: what came with it.
        memory: what the client remembers of its tickets; what it remembers of this one is added.
        clock: gives seconds.
        pause: called with the seconds the training took, if given, and may sleep: a slowed-down client does, and its
            result says so.
        first_model: needed for work that starts from the client's own model.

    Returns:
        The result, and the arrays to be sent with it: the trained model, or the message of the work's uplinks.
    """
    began, work = clock(), task.work
    if work.downlink is not UNSET and MODEL not in arrays and task.memory not in memory.of_ticket:
        return _cannot_train(shard, task, clock() - began), {}
    kept, used = ({}, UNSET) if task.memory is UNSET else _recall(task.memory, task, arrays, memory, first_model)
    start = _find_start(task, arrays, kept)
    trained, metrics = _train(shard, task, start, arrays.get(CORRECTION))
    parts: Parts = UNSET
    sent = {MODEL: trained}
    after = {OWN_MODEL: trained} if work.start == "own" else {}
    if work.uplink is not UNSET:
        message, after = _encode(task, start, trained, kept)
        sent = message or {}
        parts = describe_parts(sent)
    if work.downlink is not UNSET:
        after[REFERENCE] = start
    if task.memory is not UNSET:
        memory.store(task.ticket, after)
    if pause is not None:
        pause(clock() - began)
    result = Result(
        task.session,
        task.ticket,
        clock() - began,
        shard.num_examples,
        dtype_name(trained.dtype),
        metrics,
        used,
        parts,
    )
    return result, sent


def _cannot_train(shard: ClientShard, task: Task, seconds: float) -> Result:
    """The answer of a client that is sent a difference and has lost the model it is from."""
    return Result(task.session, task.ticket, seconds, shard.num_examples, task.dtype, None, -1, ())


def _find_start(task: Task, arrays: Arrays, kept: Arrays) -> np.ndarray:
    """The model that the training begins with: sent, the client's own, or what it had and the difference to it."""
    if task.work.start == "own":
        return kept[OWN_MODEL]
    if task.work.downlink is UNSET or MODEL in arrays:
        return _find(arrays, MODEL)
    names = [name for name in arrays if name.startswith(DIFFERENCE)]
    message = {name.removeprefix(DIFFERENCE): arrays[name] for name in names}
    return apply_difference(task.work.downlink, _find(kept, REFERENCE), message)


def _find(arrays: Arrays, name: str) -> np.ndarray:
    if name not in arrays:
        raise WireError(f"the task came without its {name}.")
    return arrays[name]


def _recall(
    ticket: int, task: Task, arrays: Arrays, memory: ClientMemory, first_model: FirstModel | None
) -> tuple[Arrays, int]:
    """What the client remembers from this ticket, and its number; if it has lost that, what it began with, and -1."""
    first: Arrays = {}
    if ticket not in memory.of_ticket:
        if task.work.start == "own":
            if first_model is None:
                raise WireError("the task starts from the client's own model, and this client has none.")
            first[OWN_MODEL] = first_model()
        if task.work.uplink is not UNSET:
            model = _find(arrays, MODEL) if task.work.start == "server" else first[OWN_MODEL]
            first |= init_memory(task.work.uplink, model.size, model.dtype)
    return memory.recall(ticket, first)


def _train(
    shard: ClientShard, task: Task, start: np.ndarray, correction: np.ndarray | None
) -> tuple[np.ndarray, dict[str, float] | None]:
    """The trained model; and the steps it took, where they may be fewer than were asked for, and losses if wanted."""
    more = {} if correction is None else {"correction": correction.astype(start.dtype, copy=False)}
    metrics: dict[str, float] = {}
    if task.work.patience is UNSET:
        trained = shard.train(start, task.work, task.key, **more)
    else:
        steps = np.zeros(1, np.int64)
        trained = shard.train(start, task.work, task.key, **more, steps_done=steps)
        metrics["steps"] = float(steps[0])
    if asks_for_measurements(task.work):
        metrics |= measure_client(task.work, start, trained, partial(_mean_loss, shard), partial(_row_losses, shard))
    return trained, metrics or None


def _mean_loss(shard: ClientShard, params: Array) -> float:
    if not isinstance(shard, MeasuresLoss):
        raise WireError(f"the task asks for the loss, and {type(shard).__name__} has no `loss(params)`.")
    return shard.loss(params)


def _row_losses(shard: ClientShard, params: Array) -> Array:
    if not isinstance(shard, MeasuresRowLosses):
        raise WireError(f"the task asks for losses of rows, and {type(shard).__name__} has no `row_losses(params)`.")
    return shard.row_losses(params)


def _encode(task: Task, start: np.ndarray, trained: np.ndarray, kept: Arrays) -> tuple[Arrays | None, Arrays]:
    """The message of the uplinks, and all that is to be remembered; the same as `engine.training` computes.

    But for uplinks that add noise: theirs comes from this machine's entropy, which the server does not know.
    """
    uplinks, key = task.work.uplink, task.uplink_key
    if uplinks is UNSET or key is UNSET:
        raise WireError("the task has uplinks without a key.")
    before = kept if task.memory is not UNSET else init_memory(uplinks, start.size, start.dtype)
    message, after = encode_change(uplinks, before, trained - start, key, start, draw_noise_key)
    if task.work.start == "own":  # the model that the server knows of
        last = f"{len(uplinks) - 1}/"
        mirror = {name.removeprefix(last): array for name, array in before.items() if name.startswith(last)}
        after[OWN_MODEL] = start + decode_message(uplinks, message, start.size, start.dtype, mirror)[0]
    return message, after
