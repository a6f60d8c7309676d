"""The compiled loop and stepping through the hooks give the same bytes, and may alternate."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import distributions as d
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.stopping import Stopping
from asyncfed.runs.header import new_header
from asyncfed.runs.simulate import simulate
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.strategies import AFL, AsyncSGD, DelayAdaptive, FedAsync, FedAvg, FedBuff
from asyncfed.strategies.discounts import Hinge
from asyncfed.strategies.schedules import ConstantRate, DelayAware

WORK = Work(epochs=2, batch_size=8, learning_rate=0.002)
STRATEGIES = {
    "afl": AFL(concurrency=5, work=WORK),
    "afl mixing": AFL(concurrency=3, aggregate="mixing", work=WORK, schedule=DelayAware(over="round")),
    "afl delta mean": AFL(concurrency=4, aggregate="delta_mean", work=WORK),
    "afl damped": AFL(concurrency=6, aggregate="delta_sum", max_staleness=2, when_stale="damp", work=WORK),
    "fedasync": FedAsync(concurrency=5, work=WORK),
    "fedasync hinge": FedAsync(concurrency=7, discount=Hinge(slope=2.0, grace=1), work=WORK),
    "fedbuff": FedBuff(concurrency=5, buffer_size=3, work=WORK),
    "fedbuff of one": FedBuff(concurrency=5, buffer_size=1, work=WORK),
    "async sgd": AsyncSGD(concurrency=2, server_lr=0.5, work=WORK),
    "fedavg": FedAvg(cohort_size=5, work=WORK),
    "sync": FedAvg(cohort_size=12, weighting="equal", work=WORK),
    "delay adaptive": DelayAdaptive(concurrency=5, staleness_threshold=2, server_lr=0.2, work=WORK),
}
DELAYS = af.delays.Delays(
    compute=d.LogNormal(median=1.0, sigma=0.7),
    slowness=d.Uniform(low=0.5, high=4.0),
    download=d.Exponential(mean=0.1),
    upload=d.Pareto(minimum=0.05, shape=3.0),
    devices=(af.delays.Device(name="phone", share=0.4, slowness=3.0, watts=5.0, dropout=0.1),),
)


def experiment_of(strategy, updates=400, clients=12, **how):
    usual = {
        "data": af.data.PaperRegression(num_samples=20 * clients),
        "delays": DELAYS,
        "budget": Budget(updates=updates),
        "evaluation": Evaluation(every=3),
    }
    return af.Experiment(num_clients=clients, strategy=strategy, **{**usual, **how})


def tables(run):
    return run.sha256, run.verdict, run.reason, run.journal.columns("rounds"), run.journal.columns("evaluations")


def both(experiment, **how):
    """Run both ways: they are the same in every table, and the loop really ran."""
    looped, stepped = (simulate(experiment, compiled=compiled, **how) for compiled in (True, False))
    assert tables(looped) == tables(stepped)
    np.testing.assert_array_equal(looped.params, stepped.params)
    return looped


@pytest.fixture(autouse=True)
def loops(monkeypatch):
    """The loops that were begun in the test; they are, also where none was compiled before."""
    from asyncfed.sim import compiled_loop, loop_candidate

    monkeypatch.setattr(loop_candidate, "ARRIVALS_WORTH_COMPILING", 0)
    begun = []
    begin = compiled_loop.begin_loop

    def counting(*arguments):
        begun.append(begin(*arguments))
        return begun[-1]

    monkeypatch.setattr(compiled_loop, "begin_loop", counting)
    return begun


@pytest.mark.parametrize("name", STRATEGIES)
def test_same_bytes(name, loops):
    both(experiment_of(STRATEGIES[name]))
    assert len(loops) == 1
    assert loops[0] is not None


@pytest.mark.parametrize("name", ["afl", "fedasync", "fedbuff", "fedavg"])
@pytest.mark.parametrize(
    "how",
    [
        {"dtype": "float32"},
        {"budget": Budget(rounds=60)},
        {"budget": Budget(elapsed=700.0)},
        {"budget": Budget(updates=403), "evaluation": Evaluation(every=7, unit="update")},
        {"budget": Budget(updates=300), "evaluation": Evaluation(every=0)},
        {"delays": replace(DELAYS, timeout=2.0, dropout=0.2)},
        {"delays": replace(DELAYS, per_sample=0.01, compute=d.ShiftedExponential(shift=1.0, mean=0.5))},
        {"delays": af.delays.Delays()},
        {"stopping": Stopping(metric="objective", patience=2, min_improvement=0.1), "budget": Budget(updates=2000)},
    ],
    ids=["float32", "rounds", "elapsed", "per update", "unwatched", "lost", "per sample", "equal", "stopping"],
)
def test_same_bytes_in_every_setting(name, how, loops):
    both(experiment_of(STRATEGIES[name], **how))
    assert loops[0] is not None


def test_divergence_ends_a_run_at_the_same_merge():
    wild = AsyncSGD(concurrency=5, server_lr=1.0, work=Work(epochs=1, batch_size=8, learning_rate=0.06))
    run = both(experiment_of(wild, updates=5000, divergence_norm=1e30))
    assert run.verdict == "diverged"
    assert run.journal.columns("rounds")["updates"][-1] > 128


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_other_losses_and_a_penalty(loss, loops):
    data = af.data.PaperClassification(num_samples=240)
    model = af.problems.LinearModel(loss=loss, l2=0.01)
    both(experiment_of(STRATEGIES["afl"], data=data, model=model))
    assert loops[0] is not None


@pytest.mark.parametrize("threads", [1, 2])
def test_trainings_of_other_problems_are_done_by_the_problem(threads, loops):
    """A problem of one's own, or one whose trainings are worth several threads, is asked to train what is pending."""
    experiment = experiment_of(STRATEGIES["fedbuff"])

    class Own:
        def __init__(self, problem):
            self._problem = problem

        def __getattr__(self, name):
            return getattr(self._problem, name)

    whole = both(experiment)
    assert both(experiment, problem=Own(experiment.problem()), threads=threads).params.tolist() == whole.params.tolist()
    assert all(loop is not None for loop in loops)


def test_sparse_rows_are_trained_by_their_own_kernel(loops):
    data = af.data.SparseText(num_samples=240, num_features=40, words=5)
    both(experiment_of(STRATEGIES["afl"], data=data, model=af.problems.LinearModel(loss="logistic")))
    assert loops[0] is not None


def test_large_trainings_are_split_among_threads():
    experiment = experiment_of(replace(STRATEGIES["afl"], work=Work(epochs=300, learning_rate=1e-4)), updates=200)
    assert both(experiment, threads=2).sha256 == both(experiment, threads=1).sha256


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(STRATEGIES)),
    st.lists(st.tuples(st.integers(1, 150), st.booleans(), st.booleans()), min_size=1, max_size=6),
)
def test_stepping_and_looping_may_alternate(name, pieces):
    """In pieces of any size, looped or stepped, continued in memory or from a checkpoint: the same bytes."""
    experiment = experiment_of(STRATEGIES[name])
    problem = experiment.problem()
    delays, plan = experiment.delays.bind(problem.num_clients, experiment.seed), experiment.plan(1)
    journal = Journal.create(None, new_header(experiment, problem))
    simulation = Simulation(problem, delays, plan, journal)
    for arrivals, compiled, reopen in pieces:
        simulation.advance(arrivals)
        if reopen and not simulation.finished:
            journal.commit(*simulation.checkpoint())
            simulation = Simulation(problem, delays, plan, journal, journal.checkpoint(), compiled=compiled)
    while not simulation.advance(1000):
        pass
    journal.commit(*simulation.checkpoint())
    assert journal.sha256() == simulate(experiment, problem=problem, compiled=False).sha256["journal"]


@st.composite
def experiments(draw):
    """Anything that the loop may be asked to do."""
    clients = draw(st.integers(2, 30))
    tickets = draw(st.integers(1, clients))
    work = Work(
        epochs=draw(st.integers(1, 3)),
        batch_size=draw(st.integers(1, 40)),
        learning_rate=draw(st.floats(1e-5, 5e-3)),
        decay=draw(st.sampled_from([0.0, 0.5])),
        proximal=draw(st.sampled_from([0.0, 0.1])),
    )
    schedule = draw(st.sampled_from([ConstantRate(), DelayAware(), DelayAware(over="round", delay_penalty=0.3)]))
    common = {"work": work, "schedule": schedule}
    damped = {"max_staleness": draw(st.integers(0, 4)), "when_stale": "damp"}
    strategy = draw(
        st.sampled_from(
            [
                *(
                    AFL(concurrency=tickets, aggregate=reading, **bound, **common)
                    for reading in ("latest", "mixing", "delta_mean", "delta_sum")
                    for bound in ({}, damped)
                ),
                FedAsync(concurrency=tickets, mixing=draw(st.floats(0.01, 1.0)), **common),
                FedBuff(concurrency=tickets, buffer_size=draw(st.integers(1, 12)), **common),
                FedAvg(cohort_size=tickets, weighting=draw(st.sampled_from(["equal", "samples"])), **common),
                DelayAdaptive(concurrency=tickets, server_lr=0.3, **common),
            ]
        )
    )
    shapes = st.sampled_from(
        [
            d.Constant(value=0.0),
            d.Constant(value=1.5),
            d.Uniform(low=0.0, high=2.0),
            d.Exponential(mean=0.7),
            d.ShiftedExponential(shift=0.5, mean=0.2),
            d.LogNormal(median=1.0, sigma=1.5),
            d.Pareto(minimum=0.1, shape=1.2),
        ]
    )
    delays = af.delays.Delays(
        compute=draw(shapes),
        download=draw(shapes),
        upload=draw(shapes),
        slowness=draw(shapes.filter(lambda shape: shape.draw(0.5) > 0)),
        dropout=draw(st.sampled_from([0.0, 0.3])),
        timeout=draw(st.sampled_from([None, 3.0])),
        per_sample=draw(st.sampled_from([0.0, 0.01])),
    )
    classes = draw(st.booleans())
    samples = draw(st.integers(clients, 20 * clients))
    return af.Experiment(
        seed=draw(st.integers(0, 2**32)),
        num_clients=clients,
        data=(af.data.PaperClassification if classes else af.data.PaperRegression)(num_samples=samples),
        model=af.problems.LinearModel(
            loss=draw(st.sampled_from(["hinge", "logistic"])) if classes else "least_squares",
            l2=draw(st.sampled_from([0.0, 0.01])),
            fit_bias=draw(st.booleans()),
        ),
        dtype=draw(st.sampled_from(["float32", "float64"])),
        strategy=strategy,
        delays=delays,
        budget=Budget(updates=draw(st.integers(150, 500))),
        evaluation=Evaluation(
            every=draw(st.integers(0, 9)), unit=draw(st.sampled_from(["round", "update"])), distance=False
        ),
    )


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(experiments())
def test_same_bytes_whatever_the_experiment(experiment):
    both(experiment, problem=experiment.problem())


def test_a_checkpoint_of_the_loop_is_that_of_stepping():
    """All but the order of the heap, who is marked free when nobody asks, and whether a model is trained already."""
    experiment = experiment_of(STRATEGIES["afl"])
    problem, states = experiment.problem(), []
    for compiled in (True, False):
        journal = Journal.create(None, new_header(experiment, problem))
        delays = experiment.delays.bind(problem.num_clients, experiment.seed)
        simulation = Simulation(problem, delays, experiment.plan(1), journal, compiled=compiled)
        simulation.advance(301)
        states.append(simulation.checkpoint())
    (looped, arrays), (stepped, other) = states
    assert sorted(looped.pop("heap")) == sorted(stepped.pop("heap"))
    assert sorted(looped.pop("free_at")) == sorted(stepped.pop("free_at"))
    assert looped == stepped
    for name in ("params", "tickets", "ticket_clients", "memory/latest_average/slots", "memory/latest_average/clients"):
        np.testing.assert_array_equal(arrays[name], other[name])


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        (AFL(concurrency=4, max_staleness=2, work=WORK), {}),
        (FedAsync(concurrency=4, weighting="inverse_participation", work=WORK), {}),
        (FedAsync(concurrency=4, sampler=af.UniformAll(), work=WORK), {}),
        (replace(STRATEGIES["afl"], work=replace(WORK, steps=3)), {}),
        (STRATEGIES["afl"], {"delays": replace(DELAYS, bandwidth_up=d.Constant(value=1e3))}),
        (STRATEGIES["afl"], {"stopping": Stopping(energy=1e9)}),
    ],
    ids=["dropping", "weights by client", "other sampler", "steps", "bandwidth", "energy"],
)
def test_what_is_not_in_numbers_is_stepped_through(strategy, how, loops):
    simulate(experiment_of(strategy, **how))
    assert not any(loops)


def test_a_strategy_that_overrides_a_hook_does_not_inherit_the_rule(loops):
    class Own(FedAsync, tag_field="kind", tag="own_fedasync"):
        def on_update(self, state, update, view):
            return super().on_update(state, replace(update, staleness=0), view)

    run = simulate(experiment_of(Own(concurrency=5, work=WORK)))
    assert not any(loops)
    assert {row.weight for row in run.journal.event_rows() if row.kind == 2} == {0.6}


def test_constant_rates_are_planned_once(loops):
    strategy = replace(STRATEGIES["afl"], schedule=ConstantRate())
    run = both(experiment_of(strategy))
    details = [row.detail for row in run.journal.event_rows() if row.kind == 0]
    assert len(set(details)) == 1
