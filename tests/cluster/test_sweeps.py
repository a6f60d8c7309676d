"""Studies whose runs are done on a cluster: the same results, and files that the driver writes."""

import time

import pytest
from tests.advice.conftest import small_search

import asyncfed as af
from asyncfed.arena.arena import plan_arena, run_arena
from asyncfed.cluster.actor_pool import ActorPool
from asyncfed.errors import ConfigError
from asyncfed.reproduce.reproduction import open_workers, plan_reproduction, simulate_missing


def files_in(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_comparison_with_a_node_killed_meanwhile(cluster, second, small, monkeypatch):
    strategies = {"afl": af.strategies.AFL(concurrency=3), "fedavg": af.strategies.FedAvg(cohort_size=2)}
    experiment = small(budget=af.Budget(rounds=30))
    alone = af.compare(experiment, strategies, range(4), workers=1)
    submit, submitted = ActorPool.submit, []

    def kill_meanwhile(pool, *call):
        job = submit(pool, *call)
        submitted.append(pool.at_work)
        if len(submitted) == 8:
            second.kill()
        return job

    monkeypatch.setattr(ActorPool, "submit", kill_meanwhile)
    with cluster() as two:
        there = af.compare(experiment, strategies, range(4), cluster=two)
    assert submitted[-1] == {"127.0.0.2": 1, "127.0.0.3": 1}
    assert any("an actor on node 127.0.0.3 was lost" in sentence for sentence in two.said)
    for label in strategies:
        for seed in range(4):
            assert there.runs[label][seed].sha256 == alone.runs[label][seed].sha256


def test_advice_the_arena_and_a_reproduction(cluster, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    plan = plan_arena(["quadratic"], ["equal"], ["iid"], ["fedasync"], seeds=1, trials=1)
    papers = [plan_reproduction(folder, quick=True, only=["2"], seeds=1) for folder in (here, there)]
    with open_workers(1) as pool:
        simulate_missing(papers[0], pool)
    alone = small_search(here / "advice"), run_arena(plan, here / "arena", 1)
    with cluster() as two:
        found = (
            small_search(there / "advice", cluster=two, described=True),
            run_arena(plan, there / "arena", 1, cluster=two),
        )
        with two.open_pool() as pool:
            simulate_missing(papers[1], pool)
    assert found[0].to_toml() == alone[0].to_toml()
    assert found[0].points == alone[0].points
    assert found[1] == alone[1]
    ours, theirs = files_in(here), files_in(there)
    assert sorted(ours.keys() - theirs.keys()) == [(here / "arena" / "runs.jsonl").relative_to(here)]
    assert {name: ours[name] for name in theirs} == theirs


def fail(text):
    raise ConfigError(text)


def sleep_and_double(seconds, number):
    time.sleep(seconds)
    return 2 * number


def test_results_are_identified_and_errors_are_those_of_the_function(cluster):
    with cluster() as two:
        with two.open_pool() as pool:
            jobs = {pool.submit(sleep_and_double, 0.2 * (n == 0), n): n for n in range(5)}
            assert {jobs[job]: job.result() for job in pool.finished(jobs)} == {n: 2 * n for n in range(5)}
            with pytest.raises(ConfigError, match=r"^no such thing$"):
                pool.submit(fail, "no such thing").result()
            with pytest.raises(ZeroDivisionError):
                pool.submit(divmod, 1, 0).result()
        with pytest.raises(ConfigError, match="closed"):
            pool.submit(divmod, 1, 1)
        with (
            pytest.raises(ConfigError, match=r"node 127\.0\.0\.[23]: no data here"),
            two.open_pool(fail, ("no data here",)),
        ):
            pass
