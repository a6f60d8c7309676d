"""Generalized AsyncSGD: the next ticket goes to a client drawn with chances of one's own, busy or not.

Paper: Leconte, Jonckheere, Samsonov & Moulines, "Queuing dynamics of asynchronous federated learning", AISTATS 2024;
chances that are best in seconds after Alahyane, Comte, Jonckheere & Moulines, "Optimizing Asynchronous Federated
Learning: A Delicate Trade-Off Between Model-Parameter Staleness and Update Frequency", 2025 (arXiv 2502.08206).

Rule:

    on arrival:    x = x + server_lr / (n p_i) (w_i - w_base)
    then:          a new ticket for client c with chance p_c; a busy client queues it and works first come, first served

Tickets of client i are dispatched, and so finished, with frequency p_i whatever the speeds, so that 1 / (n p_i) makes
the mean step that of all clients with equal weights. With equal chances, the default, it is asynchronous SGD with the
sampler `uniform_all`, to the last bit. By name server_lr is 1 / (tickets in the network), as for `async_sgd`. Chances
that need the least time follow from the clients' mean durations, which a name does not know:
`asyncfed.analysis.optimal_dispatch.with_optimal_sampling(experiment)` takes them from the delays of an experiment or
from a recorded run, `asyncfed explain sampling` from numbers of one's own.

State: the mean weight of the clients that are here, a number. Bytes beyond the model: none. Clients queue tickets, each
with the model it was sent with.

When to use it: speeds differ and persist, data differ too, and no table of clients can be kept. Fast clients are drawn
more often without counting more.

What goes wrong elsewhere: chances that minimise the bound per update fill the queues of slow clients: fewer updates are
needed, but each takes longer, and the run is slower than with equal chances. Leaving 1 / (n p_i) out makes it converge
to the optimum of those who are drawn often.

Confirmed: the abstracts of both papers were read, and the sampling and the warning are theirs. The rule and the
staleness of the closed network rest on memory, on exact solutions of small chains and on simulations
(tests/theory/test_queueing.py, test_optimal_sampling.py). The bound that is minimised is derived in
asyncfed/theory/optimal_sampling.py; that the papers' has the same terms is from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.types import Action, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, check_positive, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import PredictableSampler, Sampler, UniformAll
from asyncfed.strategies.schedules import ConstantRate


class SampledState(RoundState):
    """The mean weight, in the sampler's draws, of the clients that are here."""

    mean_weight: float = 1.0


@register("strategy")
class GeneralizedAsyncSGD(KeepBusy, RuledStrategy, tag_field="kind", tag="generalized_async_sgd"):
    """Generalized AsyncSGD: x = x + server_lr / (n p_i) (w_i - w_base) on every arrival, p_i the chance of being drawn.

    While clients come and go, n and p are those of the clients here at the merge. A round is `concurrency` merged
    updates.

    Args:
        concurrency: tickets in the network, waiting or worked on, 1 or more.
        server_lr: what a change counts where all chances are equal, above 0.
        sampler: p: `Weighted(weights=..., busy="queue")`, or `uniform_all` for equal chances. It has to give tickets to
            busy clients too, and to say each client's chance, which must be above 0.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> from asyncfed.strategies import UniformIdle
    >>> GeneralizedAsyncSGD(sampler=UniformIdle())
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.sampler is UniformIdle, which passes busy clients by, so that fast ones \
are merged more often than they are drawn. Use uniform_all, or weighted with busy = "queue".

    Leconte et al., "Queuing dynamics of asynchronous federated learning", AISTATS 2024.
    """

    concurrency: int = 5
    server_lr: float = 1.0
    sampler: Sampler = UniformAll()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = SampledState

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if not self.sampler.queues:
            raise ConfigError(
                f"strategy.sampler is {type(self.sampler).__name__}, which passes busy clients by, so that fast ones "
                'are merged more often than they are drawn. Use uniform_all, or weighted with busy = "queue".'
            )
        if not isinstance(self.sampler, PredictableSampler):
            raise ConfigError(
                f"strategy.sampler is {type(self.sampler).__name__}, which does not say each client's chance of being "
                "drawn. Give it `draw_weights`, or use uniform_all or weighted."
            )

    def check(self, num_clients: int) -> None:
        """Refuse clients that are never drawn, and what other strategies refuse."""
        super().check(num_clients)
        weights = self._weights(num_clients)
        if not min(weights) > 0:
            client = weights.index(min(weights))
            raise ConfigError(
                f"strategy.sampler gives client {client} the weight {weights[client]}; its data would be missing from "
                "what is learnt, and no other weight can make up for it. Give every client a weight above 0."
            )

    def start(self, view: View) -> tuple[SampledState, Sequence[Action]]:
        """The first tickets."""
        return self.refill(self._with_mean(SampledState(self.sampler.start()), view), view, [])

    def on_update(self, state: SampledState, update: Update, view: View) -> tuple[SampledState, Sequence[Action]]:
        """Add the change, the more the rarer its client is drawn."""
        client = update.report.client
        factor = state.mean_weight / self._weights(client + 1)[client]  # 1 / (n p_i), exactly 1 for equal chances
        merge, after = merge_on_arrival(state, update.report.ticket, self.server_lr * factor, self.concurrency)
        kept = SampledState(after.sampling, after.merged_this_round, state.mean_weight)
        return self.refill(kept, view, [merge])

    def on_join(self, state: SampledState, client: int, view: View) -> tuple[SampledState, Sequence[Action]]:
        """More tickets, if there were not clients enough; the others' chances have become smaller."""
        return self.refill(self._with_mean(state, view), view, [])

    def on_leave(self, state: SampledState, client: int, view: View) -> tuple[SampledState, Sequence[Action]]:
        """The others' chances have become larger."""
        return self._with_mean(state, view), ()

    def _weights(self, num_clients: int) -> tuple[float, ...]:
        assert isinstance(self.sampler, PredictableSampler)
        return self.sampler.draw_weights(num_clients, self.concurrency)

    def _with_mean(self, state: SampledState, view: View) -> SampledState:
        here = sorted(view.clients[place] for place in range(len(view.clients)))
        if not here:
            return state
        weights = self._weights(here[-1] + 1)
        return replace(state, mean_weight=sum([weights[client] for client in here]) / len(here))


add_algorithm(
    Algorithm(
        name="generalized_async_sgd",
        summary="Generalized AsyncSGD: tickets queue at clients drawn from p, here uniform; steps by 1 / (n p)",
        make=lambda tickets, work, rate: GeneralizedAsyncSGD(concurrency=tickets, server_lr=1.0 / tickets, work=work),
        family="staleness",
        year=2024,
        timing="asynchronous",
        data="any",
        evidence="review",
        optimum=True,
    ),
    __name__,
)
