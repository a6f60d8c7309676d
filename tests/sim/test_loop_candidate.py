"""What the compiled loop must leave to stepping, and what it must not take for something else."""

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ProtocolError
from asyncfed.core.record import Config, replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import BoundDelays
from asyncfed.delays import distributions as d
from asyncfed.engine.evaluation import Evaluation
from asyncfed.registry import promises, register
from asyncfed.runs.header import new_header
from asyncfed.runs.simulate import simulate
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.strategies import AFL, AsyncSGD, DelayAdaptive, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.discounts import Polynomial
from asyncfed.strategies.samplers import UniformIdle
from asyncfed.strategies.schedules import ConstantRate, DelayAware

WORK = Work(epochs=2, batch_size=8, learning_rate=0.002)
CLIENTS = 12
DELAYS = af.delays.Delays(
    compute=d.LogNormal(median=1.0, sigma=0.7), slowness=d.Uniform(low=0.5, high=4.0), dropout=0.1
)


def experiment_of(strategy, **how):
    usual = {
        "data": af.data.PaperRegression(num_samples=20 * CLIENTS),
        "delays": DELAYS,
        "budget": Budget(updates=400),
        "evaluation": Evaluation(every=10),
    }
    return af.Experiment(num_clients=CLIENTS, strategy=strategy, **{**usual, **how})


def check_both(experiment, **how):
    """Looped and stepped runs are the same in every table, and in the model."""
    looped, stepped = (simulate(experiment, compiled=compiled, **how) for compiled in (True, False))
    assert looped.sha256 == stepped.sha256
    for table in ("rounds", "evaluations"):
        assert looped.journal.columns(table) == stepped.journal.columns(table)


class Delegating:
    """Hands everything through that it does not do itself."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


# ---- parts of a user's own, which the loop would not call ----------------------------------------------------------


@register("strategy")
class NeverStale(FedAsync, tag_field="kind", tag="test_never_stale"):
    def on_update(self, state, update, view):
        return super().on_update(state, replace(update, staleness=0), view)


@register("strategy")
class GivesUp(FedBuff, tag_field="kind", tag="test_gives_up"):
    def on_lost(self, state, dispatch, view):
        return state, ()


@register("sampler")
class FirstIdle(UniformIdle, tag_field="kind", tag="test_first_idle"):
    def draw(self, memory, view, k):
        return [view.idle[place] for place in range(min(k, len(view.idle)))], None


@register("schedule")
class StepsLater(Config, tag_field="kind", tag="test_steps_later"):
    def plan(self, work, round, delay_spread):
        return work if round < 40 else replace(work, steps=3)


@register("discount")
class Listed(Config, tag_field="kind", tag="test_listed"):
    """Knows no staleness that does not occur."""

    weights: tuple[float, ...] = tuple(1 / (1 + staleness) for staleness in range(60))

    def weight(self, staleness):
        return self.weights[staleness]


@pytest.mark.parametrize(
    "strategy",
    [
        NeverStale(concurrency=5, work=WORK),
        GivesUp(concurrency=5, buffer_size=2, work=WORK),
        FedAsync(concurrency=5, work=WORK, sampler=FirstIdle()),
        FedAsync(concurrency=5, work=WORK, schedule=StepsLater()),
        FedBuff(concurrency=5, work=WORK, discount=Listed()),
        AFL(concurrency=2, work=WORK, max_staleness=1, when_stale="damp", damping=Listed()),
    ],
    ids=lambda strategy: type(strategy).__name__,
)
def test_parts_of_ones_own_do_what_they_say(strategy):
    check_both(experiment_of(strategy))


class Later(BoundDelays):
    def finish_compute(self, client, start, seconds):
        return start + seconds + client


class Slower(Delegating):
    def timing(self, client, ticket, work, num_examples):
        return replace(self._inner.timing(client, ticket, work, num_examples), compute=1.0 + client)


@pytest.mark.parametrize(
    "delays",
    [Later(DELAYS, CLIENTS, 0), Slower(DELAYS.bind(CLIENTS, 0)), DELAYS.bind(3, 0)],
    ids=["subclass", "wrapper", "bound to fewer clients"],
)
def test_delays_of_ones_own_are_asked(delays):
    check_both(experiment_of(FedAsync(concurrency=5, work=WORK)), delays=delays)


class HalfWay(Delegating):
    def local_train_many(self, jobs, threads=1):
        return self._inner.local_train_many(jobs, threads) * 0.5


class HalfLinear(af.problems.Linear):
    def local_train_many(self, jobs, threads=1):
        return super().local_train_many(jobs, threads) * 0.5


def test_problems_of_ones_own_train_themselves():
    experiment = experiment_of(FedAsync(concurrency=5, work=WORK))
    linear = experiment.problem()
    for problem in (HalfWay(linear), HalfLinear(linear.clients)):
        check_both(experiment, problem=problem)


def test_a_promise_is_made_by_the_class_itself():
    assert promises(UniformIdle(), "draws_from_idle")
    assert not promises(FirstIdle(), "draws_from_idle")
    assert not promises(Delegating(UniformIdle()), "draws_from_idle")
    assert all(promises(part, "known_ahead") for part in (ConstantRate(), DelayAware(), Polynomial()))


# ---- numbers of any sort -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        (FedAsync(concurrency=5, work=WORK), {"budget": Budget(elapsed=200)}),
        (FedAsync(concurrency=5, work=WORK), {"delays": replace(DELAYS, timeout=3, dropout=0.3)}),
        (AsyncSGD(concurrency=2, server_lr=1, work=WORK), {}),
        (DelayAdaptive(concurrency=2, server_lr=1, work=WORK), {}),
        (FedAsync(concurrency=5, work=WORK), {"budget": Budget(updates=300.5)}),
        (FedAsync(concurrency=5, work=WORK), {"budget": Budget(updates=2**70, rounds=50)}),
        (FedAsync(concurrency=5, work=WORK), {"evaluation": Evaluation(every=2**70, unit="update")}),
        (FedAsync(concurrency=5, work=WORK), {"evaluation": Evaluation(every=7.0, unit="update")}),
        (FedBuff(concurrency=5, buffer_size=10**11, work=WORK), {"budget": Budget(elapsed=200.0)}),
        (FedAvg(cohort_size=5, work=WORK), {"budget": Budget(updates=299)}),
    ],
    ids=[
        *("whole seconds", "whole timeout", "whole rate", "whole adaptive rate", "half an update"),
        *("huge budget", "huge interval", "real interval", "huge buffer", "odd cohorts"),
    ],
)
def test_whole_real_and_huge_numbers(strategy, how):
    check_both(experiment_of(strategy, **how))


def test_whole_numbers_are_written_as_they_are_read_back():
    """A run that is resumed reads its budget and its rates as reals: its bytes must not change by that."""
    whole, real = (
        simulate(
            experiment_of(AsyncSGD(concurrency=2, server_lr=number(1), work=WORK), budget=Budget(elapsed=number(200)))
        )
        for number in (int, float)
    )
    assert whole.sha256 == real.sha256


def test_a_report_of_zero_seconds_counts_for_the_spread():
    """Late on the clock a short computation takes no time at all, and the loop takes over while that is the least."""
    strategy = AFL(concurrency=12, work=WORK, schedule=DelayAware(over="round", delay_penalty=1e-4))
    delays = af.delays.Delays(compute=d.Uniform(low=0.0, high=3e4), dropout=0.2, timeout=1e20)
    for seed in range(3):
        check_both(experiment_of(strategy, delays=delays, seed=seed))


def test_the_clock_does_not_run_beyond_what_a_float_holds():
    experiment = experiment_of(
        FedAsync(concurrency=1, work=WORK), delays=af.delays.Delays(compute=d.Constant(value=1e306))
    )
    refusals = []
    for compiled in (True, False):
        with pytest.raises(ProtocolError, match="at inf s") as refused:
            simulate(experiment, compiled=compiled)
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
    assert np.isfinite(1e306 * 128)  # so that the loop had taken over


@pytest.mark.parametrize("strategy", [AFL(concurrency=5, work=WORK), FedBuff(concurrency=5, buffer_size=3, work=WORK)])
def test_a_run_that_ends_by_time_leaves_the_same_arrivals(strategy):
    experiment = experiment_of(strategy, budget=Budget(elapsed=200.0))
    problem, heaps = experiment.problem(), []
    for compiled in (True, False):
        journal = Journal.create(None, new_header(experiment, problem))
        delays = experiment.delays.bind(CLIENTS, experiment.seed)
        simulation = Simulation(problem, delays, experiment.plan(1), journal, compiled=compiled)
        while not simulation.advance(300):
            pass
        heaps.append(sorted(simulation.checkpoint()[0]["heap"]))
    assert heaps[0] == heaps[1]


def test_the_same_trainings_are_asked_for_in_the_same_calls():
    class Noting(Delegating):
        def local_train_many(self, jobs, threads=1):
            calls.append((jobs.clients, jobs.works, jobs.keys, jobs.starts.tobytes()))
            return self._inner.local_train_many(jobs, threads)

    experiment, calls = experiment_of(FedBuff(concurrency=5, buffer_size=3, work=WORK)), []
    problem = Noting(experiment.problem())
    simulate(experiment, problem=problem)
    looped, calls = calls, []
    simulate(experiment, problem=problem, compiled=False)
    assert looped == calls
