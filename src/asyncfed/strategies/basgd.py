"""BASGD: clients share buckets; when every bucket has a change, a robust aggregate of the buckets' means is the step.

Paper: Yang & Li, "BASGD: Buffered Asynchronous SGD for Byzantine Learning", ICML 2021; JMLR 2023.

Rule:

    client s goes to bucket s mod B;     h_b = mean of the changes in bucket b since the last step
    when no bucket is empty:  x = x + server_lr Aggr(h_1, ..., h_B), and all buckets are emptied

A client gets the latest model at once, whether its change made a step or not. Aggr is the coordinates' median or a
trimmed mean. B is from 2q + 1, q being the number of liars, to the number of clients; the median withstands
(B - 1) // 2. With B = 1 it is plain asynchronous SGD. By name B is the number of tickets, server_lr 1.

Where clients leave (ours): a bucket none of whose clients is here is not waited for, as long as 2q + 1 buckets are
filled.

State: the changes that wait for a step. Bytes beyond the model: none.

When to use it: some clients lie, the server has no data of its own, and speeds differ. Few buckets are filled soon,
many withstand more; a bucket with one liar counts as a lie, so liars in different buckets need B >= 2q + 1 for q of
them. Each step waits for the slowest bucket. Where clients' data differ much, a median of means is not their mean.

What goes wrong elsewhere: the mean updated with the count before it is raised, which loses the first change of each
bucket; a second change of a client, or every stale one, refused.

Confirmed: the paper's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Action, Merge, Schedule, Update, Work
from asyncfed.registry import register
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregator
from asyncfed.rules.bucket_aggregate import BucketAggregate
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import DispatchPolicy, KeepBusy, SamplerState, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class BucketState(SamplerState):
    """What waits for the next step.

    Args:
        sampling: the sampler's memory.
        tickets: reports that wait, in the order of arrival.
        buckets: the bucket of each.
        here: how many clients of each bucket are here.
    """

    tickets: tuple[int, ...] = ()
    buckets: tuple[int, ...] = ()
    here: tuple[int, ...] = ()


@register("strategy")
class BASGD(KeepBusy, Config, tag_field="kind", tag="basgd"):
    """BASGD: x = x + server_lr Aggr(means of B buckets), each time that no bucket is empty; client s is in s mod B.

    It withstands `liars`, those that the aggregator does among B vectors: a bucket with one liar in it is a lie. A
    round is one step. See the head of the module.

    Args:
        concurrency: tickets out at once, 1 or more.
        buckets: B, from 1 to the number of clients.
        aggregator: what is made of the buckets' means.
        server_lr: what the aggregate counts, above 0.
        sampler: which clients get the next tickets.
        work: what each client is asked to do.
        schedule: how the learning rate follows the rounds.

    >>> BASGD(buckets=7).liars
    3

    Yang & Li, "BASGD: Buffered Asynchronous SGD for Byzantine Learning", ICML 2021.
    """

    concurrency: int = 5
    buckets: int = 5
    aggregator: Aggregator = Median()
    server_lr: float = 1.0
    sampler: Sampler = UniformIdle()
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = BucketState

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if self.buckets < 1:
            raise ConfigError(f"strategy.buckets is {self.buckets}; there must be at least 1.")

    @property
    def liars(self) -> int:
        """q, how many liars it withstands."""
        return self.aggregator.tolerates(self.buckets)

    @property
    def rule(self) -> BucketAggregate:
        """What is made of the changes."""
        return BucketAggregate(buckets=self.buckets, aggregator=self.aggregator)

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches; how many are merged at once depends on who reports."""
        return DispatchPolicy("keep_busy", self.concurrency, self.buckets, predictable=False)

    def round_size(self, num_clients: int) -> int:
        """How many merged updates make a round: one for each bucket, at least."""
        return self.buckets

    def check(self, num_clients: int) -> None:
        """Refuse more buckets than clients, and fewer than the aggregator needs."""
        super().check(num_clients)
        if self.buckets > num_clients:
            raise ConfigError(
                f"strategy.buckets is {self.buckets}, but there are only {num_clients} clients, so some bucket would "
                f"always be empty. Set it to at most {num_clients}."
            )
        try:
            self.aggregator.check(self.buckets)
        except ConfigError as refusal:
            raise ConfigError(f"strategy.buckets is {self.buckets}, which is too few: {refusal}") from None

    def start(self, view: View) -> tuple[BucketState, Sequence[Action]]:
        """The first tickets."""
        here = [0] * self.buckets
        for client in view.clients:
            here[client % self.buckets] += 1
        return self.refill(BucketState(self.sampler.start(), here=tuple(here)), view, [])

    def on_update(self, state: BucketState, update: Update, view: View) -> tuple[BucketState, Sequence[Action]]:
        """The change goes into its bucket."""
        bucket = update.report.client % self.buckets
        tickets, buckets = (*state.tickets, update.report.ticket), (*state.buckets, bucket)
        return self._step_if_filled(replace(state, tickets=tickets, buckets=buckets), view)

    def on_join(self, state: BucketState, client: int, view: View) -> tuple[BucketState, Sequence[Action]]:
        """Its bucket is waited for."""
        return self.refill(self._count(state, client, 1), view, [])

    def on_leave(self, state: BucketState, client: int, view: View) -> tuple[BucketState, Sequence[Action]]:
        """Its bucket is not waited for, if nobody else's."""
        after, actions = self._merge(self._count(state, client, -1))
        return after, actions

    def _count(self, state: BucketState, client: int, change: int) -> BucketState:
        here = list(state.here)
        here[client % self.buckets] += change
        return replace(state, here=tuple(here))

    def _step_if_filled(self, state: BucketState, view: View) -> tuple[BucketState, Sequence[Action]]:
        after, actions = self._merge(state)
        return self.refill(after, view, list(actions))

    def _merge(self, state: BucketState) -> tuple[BucketState, list[Action]]:
        """The step, if every bucket that somebody is here for has a change."""
        filled = set(state.buckets)
        waits = any(count and bucket not in filled for bucket, count in enumerate(state.here))
        if waits or len(filled) < min(self.buckets, 2 * self.liars + 1):
            return state, []
        weights = tuple([self.server_lr / (len(filled) * state.buckets.count(bucket)) for bucket in state.buckets])
        merge = Merge(state.tickets, weights, keep=1.0, of="delta", ends_round=True)
        return replace(state, tickets=(), buckets=()), [merge]


add_algorithm(
    Algorithm(
        name="basgd",
        summary="BASGD: clients share as many buckets as there are tickets; the median of the buckets' means",
        make=lambda tickets, work, rate: BASGD(
            concurrency=tickets, buckets=tickets, aggregator=Median(liars=(tickets - 1) // 2), work=work
        ),
        family="robust",
        year=2020,
        timing="asynchronous",
        data="similar",
        server_memory="B",
        robust=True,
        evidence="text",
    ),
    __name__,
)
