"""FedASMU, the server's side: models are mixed in on arrival, by a weight that falls with staleness and with time.

Paper: Liu, Jia, Che, Huo, Ren, Zhou, Dai & Dou, "FedASMU: Efficient Asynchronous Federated Learning with Dynamic
Staleness-Aware Model Update", AAAI 2024.

Rule:

    t-th merge, t = 1, 2, ...:   xi = lam / (sqrt(t) (tau + 1)^sigma) + iota;     a = mu xi / (1 + mu xi)
                                 x = (1 - a) x + a w_i

lam, sigma and iota are constants here. In the paper each client has its own, which the server learns from the loss:
that needs the gradient of the loss at the merged model, on data that the server holds or that a client has to be asked
about, which no part of a merge has; it is left out rather than imitated. The devices' side is left out too: a client
that asks for a fresh model in the middle of its training, and mixes it into its own.

State: none. Bytes beyond the model: none.

When to use it: as FedAsync, where the model should settle: with iota = 0 the weight falls as 1 / sqrt(t). With iota > 0
it does not fall below mu iota / (1 + mu iota).

What goes wrong elsewhere: nothing is known to us that is peculiar to it; t counted from 0 divides by zero.

Confirmed: both formulas by an adaptation by others that cites the paper's equations, from which the values 1, 1, 0.5
and 0 for mu, lam, sigma and iota are; how the coefficients are learnt rests on memory. The paper itself was not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Action, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, check_positive, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


@register("strategy")
class FedASMU(KeepBusy, RuledStrategy, tag_field="kind", tag="fedasmu"):
    """FedASMU's server: x = (1 - a) x + a w_i on arrival.

        a = m / (1 + m),     m = mixing (scale / (sqrt(t) (staleness + 1)^power) + offset)

    t is the number of the merge, from 1. A round is `concurrency` merged updates. See the head of the module for what
    of the paper is not here.

    Args:
        concurrency: tickets out at once, 1 or more.
        mixing: mu, above 0.
        scale: lam, 0 or more.
        power: sigma, how fast the weight falls with staleness, 0 or more.
        offset: iota, what remains of the weight however late it is, 0 or more.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> FedASMU().weight(merge=4, staleness=3)
    0.2

    Liu et al., "FedASMU: Efficient Asynchronous Federated Learning with Dynamic Staleness-Aware Model Update", AAAI
    2024.
    """

    concurrency: int = 5
    mixing: float = 1.0
    scale: float = 1.0
    power: float = 0.5
    offset: float = 0.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = RoundState

    def __post_init__(self) -> None:
        check_positive("mixing", self.mixing)
        for name in ("scale", "power", "offset"):
            if not 0 <= getattr(self, name) < inf:
                raise ConfigError(f"strategy.{name} is {getattr(self, name)}; it must be zero or a positive number.")
        if not self.scale + self.offset > 0:
            raise ConfigError("strategy.scale and strategy.offset are both 0, so nothing would ever count; set one.")

    def weight(self, merge: int, staleness: int) -> float:
        """a of the merge with this number, from 1, of an update of this staleness."""
        odds: float = self.mixing * (self.scale / (sqrt(merge) * (staleness + 1.0) ** self.power) + self.offset)
        return odds / (1.0 + odds)

    def on_update(self, state: RoundState, update: Update, view: View) -> tuple[RoundState, Sequence[Action]]:
        """Mix the client's model into the server's."""
        weight = self.weight(view.version + 1, update.staleness)
        merge, after = merge_on_arrival(state, update.report.ticket, weight, self.concurrency, of="model")
        return self.refill(after, view, [merge])


add_algorithm(
    Algorithm(
        name="fedasmu",
        summary="FedASMU's server side with constant coefficients: a weight that falls with staleness and time",
        make=lambda tickets, work, rate: FedASMU(concurrency=tickets, work=work),
        family="staleness",
        year=2023,
        timing="asynchronous",
        data="similar",
        evidence="adaptation",
    ),
    __name__,
)
