"""What rules that add noise to a sum share: that the sum is of clipped changes, each counting 1/K at most, once."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET
from asyncfed.core.types import Merge, Work
from asyncfed.rules.protocol import Arrival, ServerRule
from asyncfed.uplinks.norms import check_norm


def check_noise_settings(clip: float, multiplier: float, divisor: int) -> None:
    """Refuse settings of noise that are out of range."""
    check_norm("rule.clip", clip)
    if not 0 <= multiplier < inf:
        raise ConfigError(f"rule.multiplier is {multiplier}; it must be 0 or a positive number.")
    if divisor < 1:
        raise ConfigError(f"rule.divisor is {divisor}; it must be at least 1: the size of the buffer.")


def check_clipped_sum(rule: ServerRule, clip: float, work: Work) -> None:
    """Refuse changes that nobody clips, and rules that make something else than a weighted sum of them."""
    if work.start == "own":
        raise ConfigError(
            'strategy.rule adds noise to what is merged, but work.start is "own": each client goes on from its own '
            'model, which no noise has been added to. Use start = "server".'
        )
    if work.uplink is not UNSET and getattr(work.uplink[-1], "mirrored", False):
        raise ConfigError(
            f"strategy.rule adds noise to what is merged, but of {type(work.uplink[-1]).__name__} the server keeps an "
            "estimate of each client's change, which no noise has been added to. Use ErrorFeedback, or no memory."
        )
    bound: float | None = getattr(rule, "change_bound", None)
    if bound is None:
        raise ConfigError(
            f"strategy.rule adds noise to what {type(rule).__name__} makes of a merge, which is no weighted "
            "sum of changes, so that one client may move it by any amount. Noised goes inside of other rules."
        )
    sent = inf if work.uplink is UNSET else getattr(work.uplink[-1], "change_bound", inf)
    if min(bound, sent) > clip:
        raise ConfigError(
            f"strategy.rule adds noise for changes of norm {clip:g}, but nothing clips them to it. Set "
            f"work.uplink to end with Clip(norm={clip}), or wrap Clipped(norm={clip}) in Noised."
        )


def check_sum_weights(merge: Merge, divisor: int) -> None:
    """Refuse a merge of models, and one in which a change counts more than 1/K."""
    if merge.of != "delta" or merge.keep != 1.0:
        raise ConfigError("strategy.rule adds noise for a sum of changes; use a strategy with such, as FedBuff is.")
    if min(merge.weights) < 0 or max(merge.weights) > (1.0 + 1e-12) / divisor:
        raise ConfigError(
            f"strategy.rule adds noise for weights from 0 to 1/{divisor}, but a merge has {merge.weights}. "
            "Set divisor to the buffer's size, and server_lr to 1 or less."
        )


def count_clients_once(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """If j updates of one client are among them, each counts 1/j of its weight."""
    clients = [arrival.client for arrival in arrivals]
    return [arrival._replace(weight=arrival.weight / clients.count(arrival.client)) for arrival in arrivals]
