"""Cyclic Weight Transfer: one client at a time, each starting from the previous client's result.

Paper: Chang et al., "Distributed deep learning networks among institutions for medical imaging", JAMIA 2018.

Rule:

    x = w_i      the next client in a shuffled cycle then starts from x

A round is `round_length` clients, by default all of them.

State: the place in the cycle. Bytes beyond the model: none.

When to use it: as the sequential extreme: no staleness, no averaging, and time that adds up over clients.

What goes wrong elsewhere: nothing known.

Confirmed: standard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Action, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import OneByOne, RoundState
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, ShuffledCycle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class CyclicWeightTransfer(OneByOne, Config, tag_field="kind", tag="cyclic_weight_transfer"):
    """Cyclic Weight Transfer: the model goes from client to client.

        x = w_i      the next client in a shuffled cycle then starts from x

    Args:
        round_length: how many clients make a round, 1 or more; None for as many as there are, that is, one cycle.
        sampler: the order of the clients.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> CyclicWeightTransfer().dispatch.tickets
    1

    Chang et al., "Distributed deep learning networks among institutions for medical imaging", JAMIA 2018.
    """

    round_length: int | None = None
    sampler: Sampler = ShuffledCycle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        if self.round_length is not None and self.round_length < 1:
            raise ConfigError(f"strategy.round_length is {self.round_length}; a round has at least 1 client.")

    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round."""
        return self.round_length or num_clients

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """The client's model becomes the server's, and goes to the next client."""
        count = state.merged_this_round + 1
        ends_round = count >= self.round_size(len(view.clients))
        merge = Merge((update.report.ticket,), (1.0,), keep=0.0, of="model", ends_round=ends_round)
        return self.refill(replace(state, merged_this_round=0 if ends_round else count), view, [merge])


add_algorithm(
    Algorithm(
        name="cyclic",
        summary="Cyclic Weight Transfer",
        make=lambda tickets, work, rate: CyclicWeightTransfer(round_length=tickets, work=work),
        family="synchronous",
        year=2018,
        timing="sequential",
        data="any",
        optimum=True,
    ),
    __name__,
)
