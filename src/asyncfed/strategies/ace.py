"""ACE: every arrival moves the model by the mean of all clients' last changes. Also known as IA2SGD.

Paper: Chang et al., "Mitigating Participation Imbalance Bias in Asynchronous Federated Learning", arXiv 2511.19066,
2025. As incremental aggregated asynchronous SGD (IA2SGD) it is a baseline of papers on time complexity. Older
relatives: Blatt, Hero & Gauchman, "A Convergent Incremental Gradient Method with a Constant Step Size", 2007, and
MIFA, in rounds.

Rule:

    warm-up:     no step until every client has reported once, all from the first model; then one step with their mean
    on arrival:  h = h + (D_i - h_i) / n;     h_i = D_i;     x = x + eta h

D_i = w_i - w_base is the client's change against the model it downloaded. The paper has gradients, eta of its own and
one local step; D is -lr times a gradient then. eta left out is 1 / (clients that are here): so many arrivals move the
model as far as one round of FedAvg, which is sound for any local work unless clients that are ten times slower than the
rest are as many as the rest: what they sent counts until they come again, and the model swings. Then lower `server_lr`.

The warm-up asks each client that is here at the start once, in order of number, so many at a time as there are tickets.
It waits for those tickets only: a client that leaves, or whose ticket is lost, is not waited for, and so it ends. Who
has not reported by then, and who joins later, counts from its first report on (n grows by 1). Who leaves counts with
its last change until it is back; if it is gone for good, that bias stays: use `aced`.

State: a vector per client and their sum, at the server. Bytes beyond the model: none.

When to use it: clients differ in their data and in their speed, the server has room for a model per client, and local
work is small: at an optimum of all, the mean of one-step changes is 0, whoever comes how often. Every change that
arrives is made of all clients, so there is less noise than with `ca2fl`, and more staleness.

What goes wrong elsewhere: steps during the warm-up, with 0 for those who have not reported; the change of the client
counted with weight 1 in place of 1/n. There is no certificate: a review of the paper disputes its proof.

Confirmed: "immediate, non-buffered updates that use the latest information available from all clients" by the paper's
abstract; the rule and the warm-up by public code, and by a strategy for Flower that cites the paper (one update a step,
no weights, one local epoch). The paper's algorithm itself was not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.record import UNSET, UnsetType, replace
from asyncfed.core.types import Action, Dispatch, Merge, Schedule, Train, Update, Work
from asyncfed.registry import register
from asyncfed.rules.protocol import ServerRule
from asyncfed.rules.table_mean import TableMean
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, check_positive, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class WarmUpState(RoundState):
    """How far the warm-up is.

    Args:
        sampling: the sampler's memory.
        merged_this_round: updates merged in the present round.
        warming: whether the warm-up goes on.
        unasked: clients that were here at the start, still are, and have had no ticket.
        held: tickets that were reported in the warm-up.
    """

    warming: bool = False
    unasked: tuple[int, ...] = ()
    held: tuple[int, ...] = ()


@register("strategy")
class ACE(KeepBusy, RuledStrategy, tag_field="kind", tag="ace"):
    """ACE: x = x + server_lr h on every arrival, h the mean of all clients' last changes, after a warm-up.

    The warm-up is a round: each client that is here at the start is asked once, and those that report make one merge.
    After that a round is `concurrency` merged updates.

    Args:
        concurrency: tickets out at once, 1 or more.
        server_lr: eta, what h counts, above 0; left out, 1 / (clients that are here).
        sampler: which clients get the next tickets, after the warm-up.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; by default `table_mean`, which makes it ACE.

    >>> ACE(server_lr=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.server_lr is 0.0; it must be a positive number.
    """

    concurrency: int = 5
    server_lr: float | UnsetType = UNSET
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()
    rule: ServerRule | UnsetType = TableMean()

    state_class: ClassVar[type[Any]] = WarmUpState

    def __post_init__(self) -> None:
        if self.server_lr is not UNSET:
            check_positive("server_lr", self.server_lr)

    def start(self, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """The first tickets of the warm-up."""
        everybody = tuple(sorted(view.clients))
        return self._warm_up(WarmUpState(self.sampler.start(), warming=True, unasked=everybody), view)

    def on_update(self, state: WarmUpState, update: Update, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """Hold the report while the warm-up goes on; after it, merge."""
        ticket = update.report.ticket
        if state.warming:
            return self._warm_up(replace(state, held=(*state.held, ticket)), view)
        merge, after = merge_on_arrival(state, ticket, self._step(view), self.concurrency)
        return self.refill(WarmUpState(after.sampling, after.merged_this_round), view, [merge])

    def on_lost(self, state: WarmUpState, dispatch: Dispatch, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """A new ticket; in the warm-up for a client that had none."""
        return self._warm_up(state, view) if state.warming else self.refill(state, view, [])

    def on_join(self, state: WarmUpState, client: int, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """More tickets, if there were not clients enough; the warm-up does not wait for who comes later."""
        return (state, ()) if state.warming else self.refill(state, view, [])

    def on_leave(self, state: WarmUpState, client: int, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """The warm-up does not wait for it."""
        if client not in state.unasked:
            return state, ()
        unasked = tuple([other for other in state.unasked if other != client])
        return self._warm_up(replace(state, unasked=unasked), view)

    def _warm_up(self, state: WarmUpState, view: View) -> tuple[WarmUpState, Sequence[Action]]:
        """Ask those who were not asked; when all tickets are back, merge what was reported and go on with everybody."""
        free = max(0, self.concurrency - view.in_flight)
        asked, unasked = state.unasked[:free], state.unasked[free:]
        if asked or view.in_flight:
            return replace(state, unasked=unasked), [Train(client, self.work, self.schedule) for client in asked]
        over, held = WarmUpState(state.sampling), state.held
        if not held:  # all were lost
            return self.refill(over, view, [])
        merge = Merge(held, (self._step(view) / len(held),) * len(held), keep=1.0, of="delta", ends_round=True)
        return self.refill(over, view, [merge])

    def _step(self, view: View) -> float:
        """eta."""
        return 1.0 / max(1, len(view.clients)) if self.server_lr is UNSET else self.server_lr


add_algorithm(
    Algorithm(
        name="ace",
        summary="ACE, or IA2SGD: every arrival moves the model by the mean of all clients' last changes",
        make=lambda tickets, work, rate: ACE(concurrency=tickets, work=work),
        family="client table",
        year=2025,
        timing="asynchronous",
        data="any",
        server_memory="n",
        evidence="adaptation",
        optimum=True,
    ),
    __name__,
)
