"""ASO-Fed: on every arrival the model moves by what that client's model moved, weighted by its samples.

Paper: Chen, Ning, Slawski & Rangwala, "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data", IEEE
Big Data 2020 (arXiv 1911.02134).

Rule:

    client:  s = gradient of f_i + lam (w - w_base);     z = s - s_prev + h;     w = w - r_i lr z
             h = b h + (1 - b) s_prev;     s_prev = s
    server:  on arrival of w_i:   x = x - (n_i/N) (c_i - w_i);     c_i = w_i
    r_i    = max(1, log(d_i / unit)),   d_i the mean time of client i's tickets so far

c_i is the server's copy of the client's last model, x_0 at first; n_i are the samples that the client last reported, N
those of all clients so far. With constant counts x is the mean of all clients' last models, weighted by samples: AFL's
rule, with other local steps. Here s_prev and h are kept at the server and change once a pass: z of every step of a pass
has the same h - s_prev, which goes down as a correction, and s_prev is the mean of s over the pass (with one step a
ticket, s itself). lam is `work.proximal`, by name 0.01 if the work has none; b = 0.5.

The paper has d_i in its clock's units, whose logarithm makes r_i depend on the unit, and steps of any length where
tickets take minutes. Here the unit is the shortest mean time of a client so far, unless `delay_unit` says so many
seconds; 1 is the paper's. r_i times the local rate has to be a stable rate, and with a client that is 10 times slower
than the fastest r_i = 2.3: so by name r_i = 1 (`dynamic_step = false`). Set it to true, as it is in the class, where
the rate leaves room for it.

Left out: the paper's re-weighting of the first layer, which multiplies each weight by its share exp|w| / sum exp|w| in
its row. The models here do not say which of their numbers are a first layer; and in a linear model of d features it
would shrink the whole model about d-fold with every merge.

Who leaves keeps its place in N and counts with its last model; who joins after the start begins at the model it first
downloads, and adds to N.

State: three vectors per client, at the server. Bytes: one vector more down.

When to use it: as the paper's own predecessor, for comparison. It does not correct clients towards each other: with
differing data it ends, like AFL, where the clients' models balance, not at the optimum of all.

What goes wrong elsewhere: AFL-Lib takes the whole pass's change for s, a proximal term without a gradient, a norm that
is not squared, and no r_i. Another public implementation (FedOpt, one of its training methods) changes gradients after
the step of the optimiser was made, so that they have no effect, moves h by the new gradient instead of the previous
one, counts delays in versions with a decimal logarithm, and takes the change against the downloaded model.

Confirmed: AFL-Lib's and FedOpt's code were read; they agree on z and, but for what is said above, on the rest. The
paper's formulas as they stand here, c_i and h among them, and the values of lam and b rest on notes and memory: its
abstract was read, its algorithm was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite, log
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import UNSET, UnsetType, field, replace
from asyncfed.core.types import Action, Schedule, Train, Update, Work
from asyncfed.registry import register
from asyncfed.rules.aso_fed import AsoFed, newcomers
from asyncfed.rules.protocol import ServerRule
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import KeepBusy, RoundState, RuledStrategy, merge_on_arrival
from asyncfed.strategies.protocol import View
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate


class ClientRecords(RoundState):
    """What is known of clients, by number; the lists are changed in place.

    Args:
        sampling: the sampler's memory.
        merged_this_round: updates merged in the present round.
        total: N, the samples of all clients so far.
        samples: n_i; -1 for a number that is no client's.
        seconds: what the client's tickets took in all.
        reports: how many they were.
        shortest: the shortest mean time of a client so far, in seconds; -1 if there is none.
        newcomers: clients that came after the start and have not been merged yet.
    """

    total: int = 0
    samples: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)
    shortest: float = -1.0
    newcomers: tuple[int, ...] = ()


@register("strategy")
class ASOFed(KeepBusy, RuledStrategy, tag_field="kind", tag="aso_fed"):
    """ASO-Fed: x = x + (n_i/N) (w_i - c_i) on arrival, c_i the client's last model; slow clients make longer steps.

    A round is `concurrency` merged updates. See the head of the module for the whole algorithm.

    Args:
        concurrency: tickets out at once, 1 or more.
        dynamic_step: whether client i's rate is multiplied by max(1, log(d_i / unit)), d_i the mean time of its tickets
            so far.
        delay_unit: the unit in seconds, above 0; left out, the shortest mean time of a client so far.
        sampler: which clients get the next tickets.
        work: what each client is asked to do; its proximal term is the paper's lambda.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; by default `aso_fed`, which makes it ASO-Fed.

    >>> ASOFed(delay_unit=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.delay_unit is 0.0; it must be a positive number of seconds, or left out.

    Chen et al., "Asynchronous Online Federated Learning for Edge Devices with Non-IID Data", IEEE Big Data 2020.
    """

    concurrency: int = 5
    dynamic_step: bool = True
    delay_unit: float | UnsetType = UNSET
    sampler: Sampler = UniformIdle()
    work: Work = Work(proximal=0.01)
    schedule: Schedule = ConstantRate()
    rule: ServerRule | UnsetType = AsoFed()

    state_class: ClassVar[type[Any]] = ClientRecords

    def __post_init__(self) -> None:
        if self.delay_unit is not UNSET and not 0 < self.delay_unit < inf:
            raise ConfigError(
                f"strategy.delay_unit is {self.delay_unit}; it must be a positive number of seconds, or left out."
            )

    def start(self, view: View) -> tuple[ClientRecords, Sequence[Action]]:
        """The first tickets."""
        state = ClientRecords(self.sampler.start())
        for client in view.clients:
            state = _with_samples(state, client, view.num_examples(client))
        return self.refill(state, view, [])

    def on_update(self, state: ClientRecords, update: Update, view: View) -> tuple[ClientRecords, Sequence[Action]]:
        """Count the client's samples and time, and merge."""
        report, client = update.report, update.report.client
        state = _with_samples(state, client, report.num_examples)
        state.seconds[client] += report.duration
        state.reports[client] += 1
        mean = state.seconds[client] / state.reports[client]
        shortest = mean if state.shortest < 0 else min(mean, state.shortest)
        if state.total:
            weight = report.num_examples / state.total
        else:  # nobody has samples: all count the same
            weight = 1.0 / sum(count >= 0 for count in state.samples)
        merge, after = merge_on_arrival(state, report.ticket, weight, self.concurrency)
        if client in state.newcomers:
            state = replace(state, newcomers=tuple([other for other in state.newcomers if other != client]))
            if isinstance(self.rule, AsoFed):
                merge = replace(merge, combiner=newcomers(report.ticket))
        return self.refill(replace(state, merged_this_round=after.merged_this_round, shortest=shortest), view, [merge])

    def on_join(self, state: ClientRecords, client: int, view: View) -> tuple[ClientRecords, Sequence[Action]]:
        """Count its samples; more tickets, if there were not clients enough."""
        if client >= len(state.samples) or state.samples[client] < 0:
            state = replace(state, newcomers=(*state.newcomers, client))
        return self.refill(_with_samples(state, client, view.num_examples(client)), view, [])

    def refill(
        self, state: ClientRecords, view: View, actions: list[Action], held: int = 0
    ) -> tuple[ClientRecords, Sequence[Action]]:
        """Append the tickets that are missing, each with its client's step."""
        state, filled = super().refill(state, view, actions, held)
        return state, [self._with_step(state, action) if isinstance(action, Train) else action for action in filled]

    def _with_step(self, state: ClientRecords, train: Train) -> Train:
        factor = self.step_factor(state, train.client)
        if factor == 1.0:
            return train
        return replace(train, work=replace(train.work, learning_rate=factor * train.work.learning_rate))

    def step_factor(self, state: ClientRecords, client: int) -> float:
        """r_i; 1 for a client that has not reported."""
        if not self.dynamic_step or state.reports[client] == 0:
            return 1.0
        unit = state.shortest if self.delay_unit is UNSET else self.delay_unit
        relative = state.seconds[client] / state.reports[client] / unit if unit > 0 else 1.0
        return max(1.0, log(relative)) if relative > 0 and isfinite(relative) else 1.0


def _with_samples(state: ClientRecords, client: int, num_examples: int) -> ClientRecords:
    """The state in which this client has so many samples."""
    missing = client + 1 - len(state.samples)
    if missing > 0:
        state.samples.extend([-1] * missing)
        state.seconds.extend([0.0] * missing)
        state.reports.extend([0] * missing)
    before = max(0, state.samples[client])
    state.samples[client] = num_examples
    return state if num_examples == before else replace(state, total=state.total + num_examples - before)


add_algorithm(
    Algorithm(
        name="aso_fed",
        summary="ASO-Fed: the model moves by what the client's model moved since its last report, by samples",
        make=lambda tickets, work, rate: ASOFed(
            concurrency=tickets, dynamic_step=False, work=replace(work, proximal=work.proximal or 0.01)
        ),
        family="staleness",
        year=2019,
        timing="asynchronous",
        data="similar",
        server_memory="3n",
        extra_down="1",
        evidence="adaptation",
    ),
    __name__,
)
