"""Keeping clients at work: what asynchronous strategies share."""

from __future__ import annotations

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Schedule, Start, Train, View, Work
from asyncfed.strategies.samplers import Sampler, SamplerMemory


def hand_out(
    count: int, sampler: Sampler, memory: SamplerMemory, view: View, work: Work, schedule: Schedule
) -> tuple[list[Train], SamplerMemory]:
    """Up to `count` new tickets for whom the sampler names."""
    if count <= 0:
        return [], memory
    clients, memory = sampler.draw(memory, view, count)
    if len(clients) == 1:  # the rule, once everybody is at work
        return [Train(clients[0], work, schedule)], memory
    return [Train(client, work, schedule) for client in clients], memory


def check_crowd(field: str, wanted: int, sampler: Sampler, start: Start, num_clients: int) -> None:
    """Refuse more tickets at once than there are clients, unless busy clients may queue them and it makes sense."""
    if wanted < 1:
        raise ConfigError(f"strategy.{field} is {wanted}; at least 1 client must be at work.")
    if wanted > num_clients and not sampler.queues:
        raise ConfigError(
            f"strategy.{field} is {wanted}, but there are only {num_clients} clients and this sampler gives each one "
            f"ticket at a time. Set {field} to at most {num_clients}, or use a sampler that queues (uniform_all)."
        )
    if start == "own" and sampler.queues:
        raise ConfigError(
            "strategy.sampler hands tickets to busy clients too, but clients start from their own model, which is "
            'still changing while they are busy. Use the sampler uniform_idle, or work.start = "server".'
        )


def check_between(field: str, value: float, low: float, high: float) -> None:
    """Refuse a hyper-parameter outside `low < value <= high`."""
    if not low < value <= high:
        raise ConfigError(f"strategy.{field} is {value}; it must be above {low:g} and at most {high:g}.")
