"""Liars among real processes: with --robust the run ends near an honest one, and its journal says who was filtered."""

import urllib.request
from socket import create_server

import pytest

import asyncfed as af
from asyncfed.analysis.filtered_updates import filtered_clients, filtered_tickets
from asyncfed.attacks import Liars, SignFlip
from asyncfed.core.types import Budget
from asyncfed.engine.replay import replay
from asyncfed.live.local.local_engine import LocalEngine
from asyncfed.presets import make_robust, regression
from asyncfed.runs.live import run_live
from asyncfed.runs.verify import recorded_plan
from asyncfed.store.journal import Journal
from asyncfed.store.schema import MERGE

ENGINE = LocalEngine(task_seconds=0.005)


def filtered_list(events):
    return [(event.version, filtered_tickets(event)) for event in events if event.kind == MERGE and event.detail]


def replayed_list(path):
    """The filtered updates of a replay of this file."""
    run, again = af.load(path), Journal.create(None, {})
    plan = recorded_plan(run.header, run.experiment, 1)
    for _ in replay(run.experiment.problem(), plan, run.journal.event_rows(), again):
        pass
    return filtered_list(again.event_rows())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["afl", "fedasync", "fedbuff"])
@pytest.mark.parametrize(("clients", "liars"), [(4, (2,)), (7, (1, 4))], ids=["1 of 4", "2 of 7"])
def test_sign_flips_ten_times_as_long_end_within_twice_the_honest_loss(tmp_path, name, clients, liars):
    honest = af.replace(regression(strategy=name, num_clients=clients), budget=Budget(updates=100 * clients))
    attack = Liars(attack=SignFlip(scale=10.0), clients=liars)
    strategy, _ = make_robust(honest.strategy, clients)
    defended = af.replace(honest, strategy=strategy, attack=attack)
    path = tmp_path / "defended.sqlite"
    run = run_live(defended, engine=ENGINE, out=path)
    reference = run_live(honest, engine=ENGINE, out=tmp_path / "honest.sqlite")
    bare = run_live(af.replace(honest, attack=attack), engine=ENGINE, out=tmp_path / "bare.sqlite")
    measure = defended.problem().evaluate
    wanted, reached = measure(reference.params)["objective"], measure(run.params)["objective"]
    failed = measure(bare.params)["objective"] if bare.verdict == "finished" else float("inf")
    print(f"{name}, {len(liars)} of {clients}: honest {wanted:.4g}, robust {reached:.4g}, undefended {failed:.4g}")
    assert reached < 2 * wanted
    rows = {row.client: row for row in filtered_clients(run.journal.event_rows())}
    assert set(liars) <= rows.keys()
    assert min(rows[client].share for client in liars) > 0.5
    verification = af.verify(path)
    assert verification.ok, verification.lines
    assert replayed_list(path) == filtered_list(af.load(path).journal.event_rows())


def test_metrics_count_filtered_updates_by_client(tmp_path):
    pytest.importorskip("prometheus_client")
    from asyncfed.report.trackers.prometheus_endpoint import metrics_endpoint

    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    honest = af.replace(regression(strategy="fedasync", num_clients=3), budget=Budget(updates=40))
    strategy, _ = make_robust(honest.strategy, 3)
    lying = af.replace(honest, strategy=strategy, attack=Liars(attack=SignFlip(scale=10.0), clients=(1,)))
    seen = []
    with metrics_endpoint(port, "lied") as update:

        def watch(progress):
            update(progress)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                seen.append((dict(progress.filtered), page.read().decode()))

        run_live(lying, engine=LocalEngine(task_seconds=0.03), out=tmp_path / "live.sqlite", watch=watch)
    counts, page = seen[-1]
    assert counts[1] > 0
    assert f'asyncfed_filtered_total{{client="1",run="lied"}} {counts[1]}.0' in page
