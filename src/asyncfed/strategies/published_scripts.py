"""What the paper's published scripts do, which is not what the paper's text says.

Paper: the scripts published with Forootani & Iervolino, "Asynchronous Federated Learning: A Scalable Approach for
Decentralized Machine Learning".

Rule: barrier rounds of J clients drawn without replacement; no client ever downloads, each trains on from its own last
model. When all have reported, in the order in which they were drawn,

    x = (x + w_i) / 2   for each in turn      mode "afl", the name published; its rate decays
    x = (1/J) sum_i w_i                       mode "sync", the name published_sync; its rate is constant

State: none at the server; each client keeps its model. Bytes beyond the model: none.

When to use it: with `reading="published"`, to repeat the published curves, and for nothing else: clients that never
download never learn from one another.

What goes wrong elsewhere: this is it.

Confirmed: the scripts were read and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from asyncfed.core.record import Config, replace
from asyncfed.core.types import Action, Merge, Schedule, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import Cohort, DispatchPolicy
from asyncfed.strategies.samplers import Sampler, UniformIdle
from asyncfed.strategies.schedules import ConstantRate, DelayAware

SCHEDULE_OF_MODE: dict[str, Schedule] = {"afl": DelayAware(), "sync": ConstantRate()}


@register("strategy")
class PublishedScripts(Cohort, Config, tag_field="kind", tag="published_scripts"):
    """The paper's published scripts: barrier rounds in which no client ever downloads.

    Both modes draw J clients without replacement; each trains on from its own model for ever, and the server only mixes
    what it is sent. Once the whole cohort has reported, in the order in which it was drawn:

        mode "afl"    x = (x + w_i) / 2    for each of them in turn
        mode "sync"   x = (1/J) sum_i w_i

    Use it to reproduce the published curves; use `AFL` to run the algorithm.

    Args:
        mode: "afl" or "sync".
        cohort_size: J, 1 or more and at most the number of clients.
        sampler: which clients make a cohort.
        work: what each client is asked to do; it starts from the client's own model, whatever `work.start` says.
        schedule: how the learning rate follows rounds and delays; None for the scripts' own: in mode "afl" it decays
            with the local epoch and the last round's delay spread (`DelayAware`), in mode "sync" it is constant.

    >>> PublishedScripts().job()[0].start
    'own'

    Forootani & Iervolino's published code, as it runs.
    """

    mode: Literal["afl", "sync"] = "afl"
    cohort_size: int = 5
    sampler: Sampler = UniformIdle()
    work: Work = Work(start="own")
    schedule: Schedule | None = None

    @property
    def dispatch(self) -> DispatchPolicy:
        """How this strategy dispatches: in mode "afl" each member of a cohort makes a version."""
        return DispatchPolicy("cohort", self.cohort_size, 1 if self.mode == "afl" else self.cohort_size)

    def job(self) -> tuple[Work, Schedule | None]:
        """The work, from the client's own model, at the scripts' rate."""
        work = self.work if self.work.start == "own" else replace(self.work, start="own")
        return work, self.schedule or SCHEDULE_OF_MODE[self.mode]

    def merges(self, tickets: tuple[int, ...], examples: tuple[int, ...]) -> Sequence[Action]:
        """One after another by halves, or all in one mean."""
        drawn = tuple(sorted(tickets))  # tickets are numbered in the order of the draw
        if self.mode == "sync":
            return super().merges(drawn, examples)
        return [Merge((t,), (0.5,), keep=0.5, of="model", ends_round=t == drawn[-1]) for t in drawn]


add_algorithm(
    Algorithm(
        name="published",
        summary="the published scripts, AFL mode: barrier rounds, clients never download, halving",
        make=lambda tickets, work, rate: PublishedScripts(
            mode="afl", cohort_size=tickets, work=replace(work, start="own"), schedule=rate
        ),
        family="the paper's",
        year=2024,
        timing="synchronous",
        data="the same",
        client_memory="1",
        evidence="code",
    ),
    __name__,
)


add_algorithm(
    Algorithm(
        name="published_sync",
        summary="the published scripts, synchronous mode: clients never download, plain mean",
        make=lambda tickets, work, rate: PublishedScripts(
            mode="sync", cohort_size=tickets, work=replace(work, start="own"), schedule=ConstantRate()
        ),
        family="the paper's",
        year=2024,
        timing="synchronous",
        data="the same",
        client_memory="1",
        evidence="code",
    ),
    __name__,
)
