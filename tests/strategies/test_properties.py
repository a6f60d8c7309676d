"""What must hold of the strategies whatever the schedule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Cancel, Dispatch, Drop, Merge, Report
from asyncfed.rules import Vectors
from asyncfed.strategies import AFL, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.samplers import ShuffledCycle, UniformAll, UniformIdle, Weighted

SAMPLERS = st.sampled_from([UniformIdle(), UniformAll(), ShuffledCycle(), Weighted(weights=(1.0, 5.0, 2.0))])
SEEDS = st.integers(0, 10_000)


class RandomRun:
    """A server with vectors under a random schedule. A client's model is its start plus a whole number made of its
    ticket, so that all sums are exact."""

    def __init__(self, strategy, num_clients, seed, num_params=2):
        self.server = Server(strategy, [1 + c for c in range(num_clients)], seed)
        self.vectors = Vectors(np.zeros(num_params))
        self.chance = Stream(purpose_key(seed, "schedule"))
        self.staleness_at_merge = []
        self.merges = []
        self.version = 0
        self.base = {}
        self.carry_out(self.server.start())

    def step(self, losses=0.0):
        tickets = list(self.server.outstanding)
        ticket = tickets[self.chance.below(len(tickets))]
        if self.chance.unit() < losses:
            outputs = self.server.lose(ticket)
            self.vectors.forget(ticket)
        else:
            outputs = self.report(ticket)
        self.carry_out(outputs)

    def report(self, ticket):
        dispatch = self.server.outstanding[ticket]
        shift = np.array([(37 * ticket) % 64 - 32.0, ticket % 8])
        self.vectors.trained[ticket] = self.vectors.starts[ticket] + shift
        examples = self.server.num_examples(dispatch.client)
        return self.server.receive(Report(ticket, dispatch.client, 0.0, 1.0, examples))

    def carry_out(self, outputs):
        for output in outputs:
            if isinstance(output, Dispatch):
                self.base[output.ticket] = output.base_version
                self.vectors.dispatch(output)
            elif isinstance(output, Merge):
                self.staleness_at_merge += [self.version - self.base[ticket] for ticket in output.tickets]
                self.version += 1
                self.merges.append(output)
                self.vectors.merge(output)
            elif isinstance(output, Drop | Cancel):
                self.vectors.forget(output.ticket)

    def churn(self):
        server, clients = self.server, len(self.server._examples)
        client = self.chance.below(clients)
        if client in server.clients:
            for ticket in [t for t, d in server.outstanding.items() if d.client == client]:
                self.vectors.forget(ticket)
            self.carry_out(server.leave(client))
        else:
            self.carry_out(server.join(client, 1 + client))


@given(
    seed=SEEDS,
    bound=st.integers(0, 4),
    concurrency=st.integers(1, 5),
    sampler=SAMPLERS,
    losses=st.sampled_from([0, 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_waiting_keeps_every_merge_within_the_bound(seed, bound, concurrency, sampler, losses):
    strategy = AFL(
        concurrency=concurrency, aggregate="delta_mean", max_staleness=bound, when_stale="wait", sampler=sampler
    )
    run = RandomRun(strategy, 5, seed)
    for step in range(60):
        run.step(losses)
        if step % 10 == 9:
            run.churn()
        if not len(run.server.clients):
            run.churn()
        if not run.server.outstanding:
            break  # everybody has left
    assert max(run.staleness_at_merge, default=0) <= bound
    assert run.version == run.server.version


@given(seed=SEEDS, bound=st.integers(0, 3), concurrency=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_dropping_keeps_every_merge_within_the_bound(seed, bound, concurrency):
    run = RandomRun(AFL(concurrency=concurrency, aggregate="delta_mean", max_staleness=bound), 5, seed)
    for _ in range(60):
        run.step()
    assert max(run.staleness_at_merge) <= bound


@pytest.mark.parametrize(
    "afl",
    [
        AFL(concurrency=4, aggregate="mixing", mixing=1.0, max_staleness=0, when_stale="wait"),
        AFL(concurrency=4, aggregate="delta_mean", max_staleness=0, when_stale="wait"),
        AFL(concurrency=4, aggregate="latest", max_staleness=0, when_stale="wait"),
    ],
    ids=lambda strategy: strategy.aggregate,
)
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_waiting_with_bound_zero_is_fedavg(afl, seed):
    # Everybody is in the cohort and cohorts are powers of two, so the readings agree to the last bit.
    waiting = RandomRun(afl, 4, seed)
    fedavg = RandomRun(FedAvg(cohort_size=4, weighting="equal"), 4, seed)
    for step in range(10):
        for ticket in (3, 0, 2, 1):
            waiting.carry_out(waiting.report(4 * step + ticket))
            fedavg.carry_out(fedavg.report(4 * step + ticket))
        assert np.array_equal(waiting.vectors.params, fedavg.vectors.params)
    assert waiting.server.version == fedavg.server.version == 10
    assert waiting.server.round == fedavg.server.round == 10


@given(seed=SEEDS, concurrency=st.integers(1, 5), sampler=SAMPLERS, weighting=st.sampled_from(["equal", "samples"]))
@settings(max_examples=25, deadline=None)
def test_the_sum_of_deltas_is_concurrency_times_their_mean(seed, concurrency, sampler, weighting):
    settings_ = {"concurrency": concurrency, "sampler": sampler, "weighting": weighting}
    mean = RandomRun(AFL(aggregate="delta_mean", **settings_), 5, seed)
    total = RandomRun(AFL(aggregate="delta_sum", **settings_), 5, seed)
    for _ in range(30):
        mean.step(), total.step()
    for one, other in zip(mean.merges, total.merges, strict=True):
        assert one.tickets == other.tickets
        assert np.array(one.weights) * concurrency == pytest.approx(np.array(other.weights), rel=1e-15)


@given(seed=SEEDS, sampler=SAMPLERS)
@settings(max_examples=20, deadline=None)
def test_a_buffer_of_one_is_a_delta_sum_discounted(seed, sampler):
    fedbuff = RandomRun(FedBuff(concurrency=3, buffer_size=1, sampler=sampler), 5, seed)
    for _ in range(40):
        fedbuff.step()
    expected = [(1 + staleness) ** -0.5 for staleness in fedbuff.staleness_at_merge]
    assert [merge.weights[0] for merge in fedbuff.merges] == expected


@pytest.mark.parametrize("strategy", [AFL(concurrency=4, sampler=UniformIdle()), FedAsync(concurrency=4)])
@given(seed=SEEDS)
@settings(max_examples=20, deadline=None)
def test_as_many_are_at_work_as_asked_for_and_can_be(strategy, seed):
    run = RandomRun(strategy, 6, seed)
    for step in range(60):
        if step % 4 == 3 or not run.server.outstanding:
            run.churn()
        else:
            run.step(losses=0.2)
        assert len(run.server.outstanding) == min(4, len(run.server.clients))
