"""Actors on other nodes train to the same bytes, whoever trains and whatever dies meanwhile."""

import os
import signal
import sys
from types import MappingProxyType

import numpy as np
import pytest
from tests.cluster.conftest import actors_of, wait_until

import asyncfed as af
from asyncfed.cluster import trainings
from asyncfed.cluster.actor_pool import ActorPool, ClusterLostError
from asyncfed.cluster.sent_versions import SentVersions
from asyncfed.problems.protocol import Jobs


def cnn(**how):
    """A convolutional network on handwritten digits: the experiment says all of it, so actors make it themselves."""
    settings = {
        "name": "digits",
        "num_clients": 10,
        "data": af.data.DigitImages(),
        "dtype": "float32",
        "model": af.problems.Convolutional(channels=4),
        "strategy": af.strategies.AFL(concurrency=5, work=af.Work(epochs=1, batch_size=16, learning_rate=0.05)),
        "delays": af.delays.heavy_tailed(),
        "budget": af.Budget(rounds=10),
    }
    return af.Experiment(**{**settings, **how})


@pytest.fixture(scope="module")
def digits_alone():
    """The run of one process, by which all others are judged."""
    return af.run(cnn())


@pytest.mark.parametrize(
    ("workers", "spread"),
    [(1, "1 on 127.0.0.2"), (None, "1 on 127.0.0.2, 1 on 127.0.0.3"), (5, "3 on 127.0.0.2, 2 on 127.0.0.3")],
)
def test_a_network_is_trained_to_the_same_bytes_by_any_number_of_actors(cluster, digits_alone, workers, spread):
    with cluster(workers) as some:
        assert af.run(cnn(), cluster=some).sha256 == digits_alone.sha256
    assert some.said == [f"actors: {spread}"]


def test_a_node_and_an_actor_killed_in_the_middle_change_nothing(
    cluster, head, second, digits_alone, tmp_path, monkeypatch
):
    """What they had to do is done again: by an actor of the node that is left, and by one in the actor's place."""
    submit, submitted = ActorPool.submit, []

    def kill_meanwhile(pool, *call):
        job = submit(pool, *call)
        submitted.append(pool.at_work)
        if len(submitted) == 3:
            second.kill()
        if len(submitted) == 8:
            os.kill(actors_of(head)[0], signal.SIGKILL)
        return job

    monkeypatch.setattr(ActorPool, "submit", kill_meanwhile)
    with cluster() as two:
        run = af.run(cnn(), cluster=two, out=tmp_path / "run.sqlite")
    assert submitted[2] == {"127.0.0.2": 1, "127.0.0.3": 1}
    assert submitted[-1] == {"127.0.0.2": 1}
    for address in ("127.0.0.3", "127.0.0.2"):
        assert any(f"an actor on node {address} was lost" in sentence for sentence in two.said), two.said
    assert len(submitted) > 8
    assert run.sha256 == digits_alone.sha256
    assert af.verify(tmp_path / "run.sqlite").ok


def test_strategies_that_send_more_than_a_model(cluster, small):
    """Corrections, uplinks with a memory, steps that are known only afterwards, measured losses, liars, drift."""
    work = af.Work(epochs=3, batch_size=4, learning_rate=0.01)
    feedback = af.uplinks.ErrorFeedback(af.uplinks.TopK(fraction=0.5))
    base = small(num_clients=6, data=af.data.PaperRegression(num_samples=60), evaluation=af.Evaluation(drift=True))
    afl = af.strategies.AFL(concurrency=4, work=work)
    experiments = [
        af.replace(base, strategy=af.presets.strategy_named("scaffold_async", 4, work)),
        af.replace(base, strategy=af.replace(afl, work=af.replace(work, uplink=(feedback,), loss=True))),
        af.replace(base, strategy=af.replace(afl, work=af.replace(work, epochs=40, patience=1))),
        af.replace(base, strategy=afl, attack=af.Liars(af.attacks.SignFlip(), share=0.3)),
    ]
    with cluster() as two:
        for experiment in experiments:
            alone, there = af.run(experiment), af.run(experiment, cluster=two)
            assert there.sha256 == alone.sha256
            assert there.evaluations["client_drift"].tolist() == pytest.approx(
                alone.evaluations["client_drift"].tolist(), nan_ok=True
            )


def test_calls_are_few_models_are_sent_once_and_a_problem_in_memory_is_pickled(cluster, small, monkeypatch):
    experiment = small(num_clients=40, data=af.data.PaperRegression(num_samples=200))
    problem = experiment.problem()
    sent = []
    monkeypatch.setattr("asyncfed.cluster.sent_versions.INLINE_BYTES", 0)
    with cluster() as two, two.train_for(experiment, problem, described=False) as trained:
        submit = trained._pool.submit
        monkeypatch.setattr(trained._pool, "submit", lambda f, *a: sent.append(a[1]) or submit(f, *a))
        monkeypatch.setattr(trainings, "CALL_SECONDS", 1e9)  # every client is a small one, however busy the cores are
        model, other = np.random.default_rng(0).normal(size=(2, problem.num_params)).astype(problem.dtype)
        origins = [model, other, model, *[other] * 37]
        works = [af.Work(batch_size=2, steps=3), *[af.Work(epochs=40, patience=1)] * 39]
        corrections = np.random.default_rng(1).normal(size=(40, problem.num_params)).astype(problem.dtype) / 100
        given = Jobs(np.stack(origins), list(range(40)), works, list(range(40)), False, corrections)
        found = []
        for one, jobs in ((problem, given), (trained, given._replace(origins=origins))):
            counts, followed = np.zeros((2, 40), np.int64)
            models = one.local_train_many(jobs._replace(steps_done=counts))
            moments = one.local_path_moments(jobs._replace(steps_done=followed))
            found.append([part.tobytes() for part in (counts, followed, models, *moments)])
        assert found[0] == found[1]
        assert [len(jobs.clients) for jobs in sent] == [20, 20, 20, 20]
        assert [len(jobs.models) for jobs in sent] == [2, 1, 2, 1]
        assert trained._versions.stored == 2
        trained.local_train_many(given)  # of which nobody knows where the starts are from
        assert trained._versions.stored == 2


def test_functions_of_a_problem_may_stand_in_the_script_that_was_started(cluster, small, monkeypatch):
    def make_again(experiment):
        return experiment.problem()

    make_again.__module__, make_again.__qualname__ = "__main__", "make_again"
    monkeypatch.setattr(sys.modules["__main__"], "make_again", make_again, raising=False)
    problem = small().problem()
    monkeypatch.setattr(type(problem), "__reduce__", lambda self: (make_again, (small(),)))
    starts = np.random.default_rng(0).normal(size=(4, problem.num_params)).astype(problem.dtype)
    jobs = Jobs(starts, [0, 1, 2, 0], [af.Work(steps=3)] * 4, list(range(4)), False)
    with cluster() as two, two.train_for(small(), problem, described=False) as trained:
        assert trained.local_train_many(jobs).tobytes() == problem.local_train_many(jobs).tobytes()


def test_ctrl_c_and_errors_leave_no_actor_and_a_run_that_resumes_anywhere(cluster, head, second, tmp_path, small):
    experiment = small(num_clients=6, strategy=af.strategies.AFL(concurrency=4), budget=af.Budget(rounds=40))
    alone = af.run(experiment)

    def stop(now):
        if now.rounds >= 3:
            signal.raise_signal(signal.SIGINT)

    def fail(now):
        raise ZeroDivisionError

    for name, again in (("there", False), ("here", True)):
        file = tmp_path / f"{name}.sqlite"
        with cluster() as two:
            first = af.run(experiment, out=file, cluster=None if again else two, watch=stop)
            assert first.verdict == "interrupted"
            with pytest.raises(ZeroDivisionError):
                af.resume(file, cluster=two, watch=fail)
            assert wait_until(lambda: not actors_of(head, second))
            assert af.resume(file, cluster=two if again else None).sha256 == alone.sha256
            assert wait_until(lambda: not actors_of(head, second))


def test_actors_that_could_only_wait_are_not_started(cluster, small):
    with cluster(5) as five:
        af.run(small(), cluster=five)
    assert "at most 2 trainings run at once" in five.said[0]
    assert five.said[1] == "actors: 1 on 127.0.0.2, 1 on 127.0.0.3"


# ---- without a cluster -----------------------------------------------------------------------------------------


def test_without_a_node_this_process_goes_on(small):
    class Gone:
        at_work = MappingProxyType({})

        def submit(self, *call):
            raise ClusterLostError("No node is left.")

        def leave(self):
            """There is nothing to leave."""

    problem, said = small().problem(), []
    trained = trainings.ClusterTrainings(problem, Gone(), SentVersions(None), said.append)
    jobs = Jobs(np.stack([problem.init(0)] * 2), [0, 1], [af.Work()] * 2, [1, 2])
    assert np.array_equal(trained.local_train_many(jobs), problem.local_train_many(jobs))
    assert said == ["No node is left. From here on, this process trains."]
    for ours, theirs in zip(*(p.local_path_moments(jobs) for p in (trained, problem)), strict=True):
        assert np.array_equal(ours, theirs)
    assert len(said) == 1
