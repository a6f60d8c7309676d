"""Pisces: asynchronous, with clients chosen by their losses and their staleness, merged at a pace that bounds it.

Paper: Jiang, Wang, Li & Li, "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022.

Rule: whenever a ticket is free, among idle clients:

    chosen:     U_i = n_i sqrt(mean over its rows of loss^2) / (1 + mean of its last 5 tau)^0.5, the largest; or, with
                probability e, one that has not reported, drawn uniformly;    e = max(0.3, 0.9 * 0.98^round)
    merged:     what has arrived, once (longest duration known of the clients at work) / b has passed since the last
                merge:   x = x + server_lr sum_i (n_i / n) s(tau_i) (w_i - w_base,i),     s(tau) = (1 + tau)^-0.5

so that a client of known duration sees at most b merges while it works, and its staleness is at most b.

State: of each client its last report and five values of staleness; the buffer. Bytes beyond the model: one number up.
The client measures the losses of its rows with the model it starts from, which costs about a forward pass and no
simulated time.

When to use it: clients differ in speed and in how useful their data are, and nobody is to be waited for. Slow clients
are chosen less, as they are always stale: `asyncfed fairness` shows what that costs them.

What goes wrong elsewhere: merging on every arrival, where no b holds; staleness of the last report in place of a mean,
which one lucky arrival resets.

Confirmed: utility, exploration, the mean of five values and the weights against Plato's example of the authors, whose
versions differ in their constants (0.5, 0.9, 0.98 and 0.3 in an older one, 1, 0.3, 0.99 and 0.1 today). The abstract of
the paper was read, not its text: the pace is as the notes on it and an older version of the code have it. Plato damps
an update by the client's mean staleness, here it is by its own. Its detection of clients that report false losses
(clusters of losses) is not here. That older version has b = the number of clients at work, as by name here; a client at
work that has not reported yet counts there as one that takes 180 s, here not at all; and it multiplies utilities by a
power of 1/duration, of at most 0.5, which is not in the later ones, nor here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config, field, replace
from asyncfed.core.types import Action, Merge, Schedule, Update, Wake, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import KeepBusy, RuledStrategy, SamplerState, check_positive
from asyncfed.strategies.protocol import View
from asyncfed.strategies.report_history import (
    ReportHistory,
    add_report,
    add_tickets,
    check_share,
    draw_count,
    explore_and_exploit,
    split_by_report,
)
from asyncfed.strategies.samplers import Sampler, require_measurement
from asyncfed.strategies.schedules import ConstantRate


@register("sampler")
class PiscesSampler(Config, tag_field="kind", tag="pisces"):
    """Pisces's selection: the clients with the largest losses, those that come late less, and some not known yet.

        U_i = n_i start_rms_i / (1 + mean of its last 5 tau)^staleness_power

    With staleness of 0 throughout, or a power of 0, losses alone decide. A client none of whose first three tickets
    came back is drawn only where nobody else is idle.

    Args:
        staleness_power: how much staleness counts, 0 or more.
        exploration: the share of tickets for clients that have not reported, at first; 0 to 1.
        decay: what exploration is multiplied by with every round, above 0 and at most 1.
        least_exploration: it does not fall below this, 0 to 1.

    >>> PiscesSampler().queues
    False

    Jiang et al., "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022.
    """

    staleness_power: float = 0.5
    exploration: float = 0.9
    decay: float = 0.98
    least_exploration: float = 0.3

    def __post_init__(self) -> None:
        for name in ("exploration", "decay", "least_exploration"):
            check_share(name, getattr(self, name))
        if not self.decay > 0:
            raise ConfigError(f"sampler.decay is {self.decay}; it must be above 0.")
        if not 0.0 <= self.staleness_power < inf:
            raise ConfigError(f"sampler.staleness_power is {self.staleness_power}; it must be zero or positive.")

    @property
    def queues(self) -> bool:
        return False

    @property
    def memory_type(self) -> Any:
        return ReportHistory

    def check(self, work: Work) -> None:
        """Refuse work that does not measure `start_rms`."""
        require_measurement("pisces", work, "start_rms")

    def start(self) -> ReportHistory:
        return ReportHistory()

    def observe(self, memory: ReportHistory, update: Update, view: View) -> ReportHistory:
        """Remember the report."""
        return add_report(memory, update, view, "start_rms")

    def draw(self, memory: ReportHistory, view: View, k: int) -> tuple[list[int], ReportHistory]:
        known, unknown, given_up = split_by_report(memory, view)
        share = max(self.least_exploration, self.exploration * self.decay**view.round)
        explored = min(len(unknown), draw_count(view.rng, k, share))
        best = sorted(known, key=lambda client: (-self.utility(memory, client), client))
        chosen = explore_and_exploit(view.rng, k, explored, best, unknown, given_up)
        return chosen, add_tickets(memory, chosen)

    def utility(self, memory: ReportHistory, client: int) -> float:
        """The utility of a client; 0 if it has not reported."""
        report = memory.report(client)
        if report is None:
            return 0.0
        late = sum(report.staleness) / len(report.staleness)
        return float(report.num_examples * report.loss / (1.0 + late) ** self.staleness_power)


class PacedState(SamplerState):
    """What has arrived since the last merge, when that was, and how long each client's last work took, in seconds.

    Args:
        sampling: the sampler's memory.
        tickets: what has arrived.
        examples: the samples of their clients.
        discounts: what each counts by its staleness.
        merged_at: seconds of the run's clock.
        durations: by client, 0 where none is known; changed in place.
    """

    tickets: tuple[int, ...] = ()
    examples: tuple[int, ...] = ()
    discounts: tuple[float, ...] = ()
    merged_at: float = 0.0
    durations: list[float] = field(default_factory=list)


@register("strategy")
class Pisces(KeepBusy, RuledStrategy, tag_field="kind", tag="pisces"):
    """Pisces: guided selection, and merges at intervals in which nobody of known duration becomes too stale.

        interval:  the longest known duration of the clients at work / staleness_bound
        x = x + server_lr sum_i (n_i / n) s(tau_i) (w_i - w_base,i)     over what arrived since the last merge

    A merge comes with the first arrival after the interval, or when the interval ends and something has arrived; with
    nobody of known duration at work, on arrival. Staleness stays within the bound as far as durations repeat
    themselves. A round is one merge.

    Args:
        concurrency: tickets out at once, 1 or more.
        staleness_bound: the paper's b, in versions, 1 or more.
        server_lr: what the mean change counts, above 0.
        discount: s, what an update counts by its staleness.
        sampler: which clients get the next tickets.
        work: what each client is asked to do; the paper's sampler needs `start_rms`.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> Pisces(staleness_bound=0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.staleness_bound is 0; it must be at least 1 version.

    Jiang et al., "Pisces: Efficient Federated Learning via Guided Asynchronous Training", SoCC 2022.
    """

    concurrency: int = 5
    staleness_bound: int = 5
    server_lr: float = 1.0
    discount: Discount = Polynomial(power=0.5)
    sampler: Sampler = PiscesSampler()
    work: Work = Work(start_rms=True)
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Any]] = PacedState
    single_updates = "what has arrived when its interval ends may be a single update"

    def __post_init__(self) -> None:
        check_positive("server_lr", self.server_lr)
        if self.staleness_bound < 1:
            raise ConfigError(f"strategy.staleness_bound is {self.staleness_bound}; it must be at least 1 version.")

    def on_update(self, state: PacedState, update: Update, view: View) -> tuple[PacedState, Sequence[Action]]:
        """Collect the change; merge if the interval is over."""
        report = update.report
        _note_duration(state.durations, report.client, report.duration)
        first = not state.tickets
        state = replace(
            state,
            tickets=(*state.tickets, report.ticket),
            examples=(*state.examples, report.num_examples),
            discounts=(*state.discounts, self.discount.weight(update.staleness)),
        )
        return self._merge_if_due(state, report.arrived_at, view, set_timer=first)

    def on_wake(self, state: PacedState, number: int, now: float, view: View) -> tuple[PacedState, Sequence[Action]]:
        """The interval that was set when something first arrived after merge `number` is over."""
        if number != view.version or not state.tickets:
            return state, ()  # merged meanwhile
        return self._merge_if_due(state, now, view, set_timer=True)

    def _merge_if_due(
        self, state: PacedState, now: float, view: View, set_timer: bool
    ) -> tuple[PacedState, Sequence[Action]]:
        at_work = [state.durations[d.client] for d in view.outstanding.values() if d.client < len(state.durations)]
        left = state.merged_at + max(at_work, default=0.0) / self.staleness_bound - now
        if left > 1e-9 * max(1.0, now):  # not a rounding error
            return self.refill(state, view, [Wake(left, view.version)] if set_timer else [])
        counts = state.examples if any(state.examples) else (1,) * len(state.tickets)
        total = sum(counts)
        weights = tuple([self.server_lr * n / total * s for n, s in zip(counts, state.discounts, strict=True)])
        merge = Merge(state.tickets, weights, keep=1.0, of="delta", ends_round=True)
        after = PacedState(state.sampling, merged_at=now, durations=state.durations)
        return self.refill(after, view, [merge])


def _note_duration(durations: list[float], client: int, duration: float) -> None:
    durations.extend([0.0] * (client + 1 - len(durations)))
    durations[client] = duration


add_algorithm(
    Algorithm(
        name="pisces",
        summary="Pisces: clients of large losses and small staleness, merged at a pace that bounds it",
        make=lambda tickets, work, rate: Pisces(
            concurrency=tickets, staleness_bound=tickets, work=replace(work, start_rms=True)
        ),
        family="selection and fairness",
        year=2022,
        timing="asynchronous",
        data="similar",
        server_memory="K, and a few numbers a client",
        extra_up="1 number",
        evidence="code",
        metrics=("start_rms",),
    ),
    __name__,
)
