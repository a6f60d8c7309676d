"""What cannot be run with very many clients, because it keeps something for each of them: refused before a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, kind_of
from asyncfed.experiment import Experiment
from asyncfed.problems.client_sizes import MOST_LISTED_CLIENTS, require_listed
from asyncfed.registry import promises

PROMISE = "any_population"
"""What a strategy, a sampler or a rule says of itself whose memory, and the cost of whose decisions, follow from the
clients that were heard from, and not from how many there are."""


def check_large_population(experiment: Experiment, num_clients: int) -> None:
    """Refuse what needs something of every client, if there are more than a list should hold.

    Args:
        experiment: what is to be run.
        num_clients: how many clients there are.
    """
    if num_clients <= MOST_LISTED_CLIENTS:
        return
    for place, part in _deciding_parts("strategy", experiment.strategy):
        if not promises(part, PROMISE):
            name = kind_of(type(part)) or type(part).__name__
            require_listed(num_clients, f"{place} is {name}, which does not promise `{PROMISE}`: it")
    if getattr(experiment.strategy, "weighting", None) == "inverse_participation":
        require_listed(num_clients, 'strategy.weighting is "inverse_participation", which')
    if experiment.attack is not UNSET:
        require_listed(num_clients, "attack draws liars from all clients: it")
    if experiment.privacy is not UNSET:
        require_listed(num_clients, "privacy accounts for each client: it")
    if experiment.churn and (absent := experiment.plan(1, num_clients).absent_at_start()):
        raise ConfigError(
            f"churn lets client {min(absent)} join that is absent at the start, and there are {num_clients:,} clients; "
            f"absences at the start are listed for up to {MOST_LISTED_CLIENTS:,}. Let it leave first, or leave it out."
        )


def _deciding_parts(place: str, part: Any) -> Iterator[tuple[str, Any]]:
    """A strategy or rule, and what decides within it."""
    yield place, part
    for name in ("strategy", "sampler", "rule", "aggregator"):
        inner = getattr(part, name, UNSET)
        if inner is not UNSET and inner is not None:
            yield from _deciding_parts(f"{place}.{name}", inner)
