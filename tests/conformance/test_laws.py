"""Laws that hold for every shipped algorithm, whatever its formula. New algorithms are covered by their names.

What a law does not hold for is named beside it, with the reason.
"""

from copy import copy

import numpy as np
import pytest
from tests.conformance.cases import CASES, make
from tests.conformance.independent import aggregates
from tests.conformance.live_run import play_live
from tests.conformance.schedules import draw_world, record

from asyncfed.engine.replay import replay
from asyncfed.rules import (
    Average,
    CenteredClipping,
    Ctma,
    GeometricMedian,
    Krum,
    Median,
    MultiKrum,
    TrimmedMean,
)
from asyncfed.sim.simulation import Simulation
from asyncfed.store.events import Event
from asyncfed.store.journal import Journal
from asyncfed.strategies import algorithms

ALGORITHMS = algorithms()
each = pytest.mark.parametrize("name", ALGORITHMS)


def world_of(name, seed, **how):
    return draw_world(seed, **{**CASES[name].world, **how} if name in CASES else how)


def recorded(name, seed, *, drawn=True, **how):
    """One schedule of this algorithm, with drawn settings or as it is made by its name."""
    world = world_of(name, seed, **how)
    return record(world, make(name, world, seed if drawn else None))


# ---- the staleness law -----------------------------------------------------------------------------------------------


class Account:
    """Ages of tickets, in versions, when they were merged, dropped, cancelled or lost, or now.

    `others` counts, over all versions, the tickets that were out or waiting while it was made and are not in it;
    `head_start` how old tickets were when they left; `sizes` how many were out after each event.
    """

    def __init__(self, recording):
        self.ages, self.others, self.head_start, self.version, self.sizes = [], 0, 0, 0, []
        base, out, waiting = recording.base, {}, set()
        for event, decided in zip(recording.events, recording.decided, strict=True):
            gone = [event.ticket] if event.kind in ("arrived", "lost") else []
            if event.kind == "left":
                gone = [t for t, client in out.items() if client == event.client]
            for ticket in gone:
                del out[ticket]
                if event.kind == "arrived":
                    waiting.add(ticket)
                else:
                    self.ages.append(self.version - base[ticket])
            for merged in decided.merged:
                waiting -= set(merged)
                self.ages += [self.version - base[ticket] for ticket in merged]
                self.others += len(out) + len(waiting)
                self.version += 1
            for ticket in decided.dropped:
                waiting.remove(ticket)
                self.ages.append(self.version - base[ticket])
            for ticket in decided.cancelled:
                del out[ticket]
                self.ages.append(self.version - base[ticket])
            for ticket, client in event.sent:
                out[ticket] = client
                self.head_start += self.version - base[ticket]
            self.sizes.append(len(out))
        self.ages += [self.version - base[ticket] for ticket in [*out, *waiting]]


OTHER_NUMBERS_OUT = {
    "ace": "in the warm-up, reports wait and their clients get nothing to do",
    "aced": "in the warm-up, reports wait and their clients get nothing to do",
    "pisces": "merges come at times, with all C tickets out, or on arrival, with C - 1",
    "port": "while a merge waits for late clients, those whose reports wait get nothing to do",
    "ringleader": "reports wait for the next table, and tickets may leave with an older model; all clients are at work",
}
"""Asynchronous algorithms for which C tickets out do not tell how many grow older, and why."""


@pytest.mark.slow
@each
def test_ages_sum_to_the_number_of_others_out_times_the_versions(name):
    """sum of ages at merge, drop, cancellation and loss + ages of what is out or waits = (C - 1) T, exactly.

    Every new version makes each of the C - 1 tickets that are out beside the one that arrived one version older. T
    counts versions, so flushes of a buffer. Where algorithms cancel or drop, their tickets' ages count as well; that is
    the law's form for them. It fails if staleness is counted from 1 or after the version is raised, and if a client is
    forgotten. Who waits for all (C tickets in, then one version) has no others out: every age is 0. Where C changes,
    the number of others is counted version by version.
    """
    check_ages(name, range(1, 6))


@each
def test_ages_in_one_schedule(name):
    check_ages(name, [0])


def check_ages(name, seeds):
    for seed in seeds:
        account = Account(recorded(name, seed))
        assert min(account.ages) >= 0
        assert sum(account.ages) == account.others + account.head_start
        assert account.head_start == 0 or name == "ringleader"
        account = Account(recorded(name, seed, drawn=False, churn=False))
        if ALGORITHMS[name].timing in ("synchronous", "sequential") and name != "published":
            assert set(account.ages) <= {0}
        elif ALGORITHMS[name].timing == "asynchronous" and name not in OTHER_NUMBERS_OUT:
            assert len(set(account.sizes)) == 1, f"tickets out after each event: {account.sizes}"
            assert sum(account.ages) == (account.sizes[0] - 1) * account.version


# ---- sums of weights, and what does not depend on names and origins --------------------------------------------------


@pytest.mark.slow
@each
def test_what_is_kept_and_what_is_mixed_in_sum_to_one(name):
    """A merge of models is an average: keep + sum of weights = 1. A merge of changes keeps the model as it is."""
    for seed in range(3):
        recording = recorded(name, seed)
        for keep, weights, of in zip(recording.keeps, recording.weights, recording.payloads, strict=True):
            if of == "model":
                assert abs(keep + sum(weights.values()) - 1) < 1e-12
            elif of == "delta":
                assert keep == 1


DEPENDS_ON_THE_ORIGIN: dict[str, str] = {}
"""Algorithms whose steps change if all models are moved by the same vector, and why."""


@pytest.mark.slow
@each
def test_the_origin_of_the_model_does_not_matter(name):
    """Targets y + A s and a start x0 + s give the same run, moved by s: no rule may use where 0 is."""
    for seed in range(2):
        world = world_of(name, seed, l2=0.0)
        strategy = make(name, world, seed)
        shift = np.random.default_rng(seed).normal(size=world.problem.num_params)
        here, there = record(world, strategy), record(world.moved(shift), strategy)
        assert [e.sent for e in here.events] == [e.sent for e in there.events]
        assert here.decided == there.decided
        moves = [np.abs(b - a - shift).max() for a, b in zip(here.versions, there.versions, strict=True)]
        if name in DEPENDS_ON_THE_ORIGIN:
            assert max(moves) > 1e-6
        else:
            assert max(moves) < 1e-10


NAMES_MATTER = {
    "aflguard": "one client, by number, is the trusted one",
    "zeno": "one client, by number, is the trusted one",
    "asgrad_random": "the next client is drawn by number, busy or not",
    "asgrad_shuffled": "the order is drawn by number",
    "cyclic": "the order of the cycle is drawn by number",
    "generalized_async_sgd": "the next client is drawn by number, busy or not",
    "published": "the server halves with each client in the order in which they were drawn",
}
"""Algorithms in which clients are not interchangeable, and why."""


@pytest.mark.slow
@each
def test_renaming_clients_renames_the_run(name):
    """Everybody at work, each with a speed of its own: under other names the same happens, in the same order."""
    if name in NAMES_MATTER:
        return
    world = world_of(name, 5, losses=False, churn=False, num_clients=5, tickets=5)
    world.delays.noise, world.delays.pace = 0.0, [1.0, 1.37, 0.61, 2.23, 0.83]
    order = np.random.default_rng(1).permutation(5).tolist()
    strategy = make(name, world)
    one, other = record(world, strategy, "zeros"), record(world.renamed(order), strategy, "zeros")
    for a, b in zip(one.events, other.events, strict=True):
        assert a.kind == b.kind
        assert a.time == pytest.approx(b.time)
        if a.kind == "arrived":
            assert order[a.client] == b.client
    assert len(one.versions) == len(other.versions) > 1
    for a, b in zip(one.versions, other.versions, strict=True):
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if a.timing == "synchronous"])
def test_the_order_of_arrivals_within_a_cohort_does_not_matter(name):
    """But for rounding: sums are made in the order of arrival, which the journal holds. Published files rest on it."""
    for seed in range(6):
        world = world_of(name, seed, losses=False, churn=False)
        strategy = make(name, world, seed)
        one = record(world, strategy)
        world.delays = copy(world.delays)
        world.delays.pace, world.delays.noise = world.delays.pace[::-1], 0.7
        other = record(world, strategy)
        assert one.events[0].sent == other.events[0].sent
        # Later cohorts are drawn in another order, because clients became idle in another one.
        assert np.allclose(one.versions[1], other.versions[1], rtol=1e-13, atol=1e-15)


# ---- loss and churn --------------------------------------------------------------------------------------------------


WAIT_FOR_EVERYBODY = {"malenia", "ringleader"}
"""Algorithms that make no step before the slowest client has reported, however long that takes."""


@pytest.mark.slow
@each
def test_every_report_has_one_fate_and_the_model_goes_on(name):
    """Under losses, joins and leaves: no ticket is merged, dropped or cancelled twice, and merging does not cease."""
    seeds = [seed for seed in range(40) if world_of(name, seed).churn or world_of(name, seed).delays.loss][:4]
    for seed in seeds:
        recording = recorded(name, seed)
        settled = [t for d in recording.decided for t in (*sum(d.merged, ()), *d.dropped, *d.cancelled)]
        assert len(settled) == len(set(settled))
        arrived = [e.ticket for e in recording.events if e.kind == "arrived"]
        assert len(recording.versions) > 1 or len(arrived) < 15 or name in WAIT_FOR_EVERYBODY


# ---- simulated, live, resumed, replayed ------------------------------------------------------------------------------


def rows_of(journal):
    texts = {number: text for text, number in journal._detail_ids.items()}
    return [Event(*row[:8], None if row[8] is None else texts[row[8]]) for row in journal.events]


def simulated(world, plan, pieces=None):
    """The simulation's end; with `pieces`, stopped and continued from its checkpoint after so many arrivals each."""
    journal = Journal.create(None, {})
    simulation = Simulation(world.problem, world.delays, plan, journal)
    for _ in range(0 if pieces is None else world.arrivals // pieces):
        simulation.advance(pieces)
        state, arrays = simulation.checkpoint()
        simulation = Simulation(world.problem, world.delays, plan, journal, (state, arrays))
    simulation.advance(world.arrivals % pieces if pieces else world.arrivals)
    return simulation, journal


@pytest.mark.slow
@each
def test_simulated_live_resumed_and_replayed_it_is_the_same_run(name):
    """To the last bit: continued from checkpoints, replayed from the journal, and driven as a live session is."""
    for seed in (1, 2):
        world = world_of(name, seed)
        recording = record(world, make(name, world, seed))
        whole, journal = simulated(world, recording.plan)
        assert whole.state.params.tobytes() == recording.versions[-1].tobytes()
        resumed, second = simulated(world, recording.plan, pieces=7)
        assert resumed.state.params.tobytes() == whole.state.params.tobytes()
        assert rows_of(second) == rows_of(journal)
        again = Journal.create(None, {})
        for _ in replay(world.problem, recording.plan, rows_of(journal), again):
            pass
        assert again.checkpoint()[1]["params"].tobytes() == whole.state.params.tobytes()
        live = play_live(recording)
        assert np.allclose(live.params, whole.state.params, rtol=1e-9, atol=1e-12)
        assert live.replayed.tobytes() == live.params.tobytes()


AGGREGATORS = {
    "average": (Average(), {}),
    "median": (Median(), {}),
    "trimmed_mean": (TrimmedMean(liars=2), {"liars": 2}),
    "geometric_median": (GeometricMedian(iterations=3, tolerance=0.0), {"iterations": 3, "smoothing": 1e-6}),
    "krum": (Krum(liars=2), {"liars": 2}),
    "multi_krum": (MultiKrum(liars=2, keep=4), {"liars": 2, "keep": 4}),
    "centered_clipping": (CenteredClipping(radius=1.5, iterations=3), {"radius": 1.5, "iterations": 3}),
    "ctma": (Ctma(liars=3), {"liars": 3}),
    "ctma by weight": (Ctma(share=0.3), {"share": 0.3}),
}


@pytest.mark.parametrize("name", AGGREGATORS)
def test_robust_aggregates_are_the_independent_ones(name):
    """On vectors of whole numbers, with many ties, and on others; with equal weights and unequal ones."""
    aggregator, how = AGGREGATORS[name]
    for seed in range(60):
        chance = np.random.default_rng(seed)
        count = int(chance.integers(7, 12))
        vectors = chance.normal(size=(count, 3)) * 2 if seed % 2 else chance.integers(-2, 3, (count, 3)).astype(float)
        weights = np.full(count, 1 / count) if seed % 3 == 0 else chance.dirichlet(np.ones(count))
        made, _ = aggregator.aggregate(vectors, weights, aggregator.init(vectors[0]), np.arange(count))
        expected = getattr(aggregates, name.split()[0])(vectors, weights, how)
        assert made.vector == pytest.approx(expected, rel=1e-12, abs=1e-12), f"seed {seed}"
