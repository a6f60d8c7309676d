"""Virtual time, worked out by hand on tiny problems."""

import json

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import DelayError
from asyncfed.core.random import draw_key, purpose_key
from asyncfed.core.record import replace
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Availability, Constant, Delays, Exponential, FunctionDelays
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn
from asyncfed.strategies import AFL, FedAvg, FedBuff, PublishedScripts
from asyncfed.strategies.samplers import UniformAll
from asyncfed.strategies.schedules import ConstantRate

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)
SECONDS = {0: 3.0, 1: 1.0, 2: 2.0, 3: 5.0, 4: 1.0, 5: 3.0, 6: 9.0}
"""Tickets 0, 1, 2 go out at 0; each arrival brings the next, so 3 at 1 s, 4 at 2 s, 5 and 6 at 3 s."""


def queueing(concurrency, aggregate="delta_sum"):
    return AFL(concurrency=concurrency, aggregate=aggregate, sampler=UniformAll(), work=WORK, schedule=ConstantRate())


# ---- order -----------------------------------------------------------------------------------------------------


def test_arrivals_come_in_order_of_time_and_ties_in_order_of_ticket(tiny, scripted, events):
    run = af.run(tiny(), delays=scripted(SECONDS))
    reports = events(run, "report")
    assert [(e.ticket, e.time) for e in reports] == [(1, 1.0), (2, 2.0), (0, 3.0), (4, 3.0), (3, 6.0), (5, 6.0)]
    assert [e.a for e in reports] == [SECONDS[e.ticket] for e in reports]
    # The update that ends the run brings no further ticket.
    assert [(e.ticket, e.time) for e in events(run, "dispatch")][3:] == [
        (3, 1.0),
        (4, 2.0),
        (5, 3.0),
        (6, 3.0),
        (7, 6.0),
    ]


def test_every_event_is_in_the_journal_once_and_in_order(tiny, scripted, events):
    run = af.run(tiny(budget=Budget(updates=2)), delays=scripted(SECONDS))
    kinds = ["dispatch"] * 3 + ["report", "merge", "dispatch", "report", "merge", "stop"]
    assert [e.kind for e in events(run)] == kinds
    assert [e.seq for e in events(run)] == list(range(len(kinds)))
    assert [e.version for e in events(run, "report")] == [0, 1]  # at arrival
    assert [e.version for e in events(run, "merge")] == [1, 2]  # after the merge
    assert json.loads(events(run, "stop")[0].detail) == "all 2 updates are merged"


def test_staleness_of_each_round_is_what_the_events_say(tiny, scripted):
    rounds = af.run(tiny(), delays=scripted(SECONDS)).rounds
    # versions merged since download: tickets 1, 2, 0 wait for 0, 1, 2; tickets 4, 3, 5 for 1, 3, 2
    assert rounds["staleness_mean"].tolist() == [1.0, 2.0]
    assert rounds["staleness_max"].tolist() == [2, 3]


@pytest.mark.parametrize("strategy", [AFL(concurrency=4, work=WORK), FedBuff(concurrency=4, buffer_size=3, work=WORK)])
def test_the_account_of_each_round_equals_a_recomputation_from_the_events(tiny, events, strategy):
    experiment = tiny(
        clients=6, strategy=strategy, budget=Budget(rounds=7), delays=Delays(compute=Exponential(mean=1.0), dropout=0.1)
    )
    run = af.run(experiment)
    base, durations, stale, shares, expected = {}, [], [], np.zeros(6), []
    spread = longest = energy = lost = 0.0
    down = up = 0
    for event in events(run):
        if event.kind == "dispatch":
            base[event.ticket] = (event.version, event.client)
            down += 1
        elif event.kind == "lost":
            energy, lost = energy + event.b, lost + 1
        elif event.kind == "report":
            durations.append(event.a)
            energy, up = energy + event.b, up + 1
        elif event.kind == "merge":
            detail = json.loads(event.detail)
            tickets = detail.get("tickets", [event.ticket])
            stale += [event.version - 1 - base[t][0] for t in tickets]
            np.add.at(shares, [base[t][1] for t in tickets], 1)
            if detail["ends_round"]:
                spread, longest = spread + max(durations) - min(durations), longest + max(durations)
                jain = shares.sum() ** 2 / (6 * (shares**2).sum())
                row = (spread, longest, energy, down, up, np.mean(stale), max(stale), lost, (shares > 0).sum(), jain)
                expected.append(row)
                durations, stale = [], []
    names = ("cumulative_spread", "cumulative_longest", "energy", "bytes_down", "bytes_up", "staleness_mean")
    names += ("staleness_max", "lost", "participants", "jain_index")
    model_bytes = run.params.nbytes
    for name, values in zip(names, zip(*expected, strict=True), strict=True):
        scale = model_bytes if name.startswith("bytes") else 1
        np.testing.assert_allclose(run.rounds[name], np.array(values) * scale, rtol=1e-12, err_msg=name)
    assert lost > 0
    assert run.participation().tolist() == shares.tolist()


# ---- a client's clock ------------------------------------------------------------------------------------------


def test_a_busy_client_works_on_its_second_ticket_later_from_the_model_handed_out_with_it(tiny, scripted, events):
    experiment = tiny(clients=1, strategy=queueing(2), budget=Budget(updates=3))
    run = af.run(experiment, delays=scripted({0: 2.0, 1: 3.0, 2: 1.0}))
    reports = events(run, "report")
    assert [(e.ticket, e.time) for e in reports] == [(0, 2.0), (1, 5.0), (2, 6.0)]
    assert [e.a for e in reports] == [2.0, 3.0, 1.0]  # the wait in the queue is not part of the duration
    assert [e.version for e in events(run, "dispatch")[:3]] == [0, 0, 1]
    problem, key = experiment.problem(), purpose_key(0, "train")
    x0 = problem.init(0)
    first, second = (problem.local_train(x0, 0, WORK, draw_key(key, 0, ticket)) for ticket in (0, 1))
    x1 = x0 + (first - x0)
    third = problem.local_train(x1, 0, WORK, draw_key(key, 0, 2))
    assert run.params.tolist() == (x1 + (second - x0) + (third - x1)).tolist()


def test_download_compute_and_upload_add_up_and_a_queue_overlaps_transfers_only(tiny, events):
    delays = Delays(compute=Constant(value=2.0), download=Constant(value=0.5), upload=Constant(value=0.25))
    run = af.run(tiny(clients=1, strategy=queueing(2), budget=Budget(updates=2), delays=delays))
    assert [e.time for e in events(run, "report")] == [2.75, 4.75]
    assert [e.a for e in events(run, "report")] == [2.75, 2.75]


def test_absences_pause_the_work_and_cost_no_energy(tiny, events):
    nights = Availability(period=10.0, on_fraction=0.5, random_phase=False)
    delays = Delays(compute=Constant(value=7.0), availability=nights)
    run = af.run(tiny(clients=1, budget=Budget(updates=2), delays=delays))
    # 5 s until the first window closes and 2 s from 10; then 3 s until 15 and 4 s from 20
    assert [e.time for e in events(run, "report")] == [12.0, 24.0]
    assert [e.a for e in events(run, "report")] == [12.0, 12.0]
    assert [e.b for e in events(run, "report")] == [45.0 * 7.0] * 2


def test_energy_is_watts_times_computing_seconds_and_bytes_are_per_dispatch_and_report(tiny, scripted, events):
    delays = scripted.parts(usual=(0.5, 2.0, 0.5), watts=10.0)
    run = af.run(tiny(clients=2, budget=Budget(updates=4)), delays=delays)
    assert [e.b for e in events(run, "report")] == [20.0] * 4
    last = {name: values[-1] for name, values in run.rounds.items()}
    size = run.params.nbytes
    # The fourth report ends the run, so no ticket replaces it, and one is left at work.
    assert (last["energy"], last["bytes_up"], last["bytes_down"]) == (80.0, 4 * size, 5 * size)


def test_who_does_not_download_costs_no_bytes_down(tiny):
    strategy = PublishedScripts(cohort_size=2, work=replace(WORK, start="own"))
    run = af.run(tiny(strategy=strategy, budget=Budget(rounds=2)))
    assert run.rounds["bytes_down"].tolist() == [0, 0]
    assert run.rounds["bytes_up"].tolist() == [2 * run.params.nbytes, 4 * run.params.nbytes]


@pytest.mark.parametrize("answer", [-1.0, float("nan"), float("inf"), "soon"])
def test_a_delay_that_is_no_duration_is_refused_with_its_client_and_ticket(tiny, answer):
    model = FunctionDelays(lambda client, ticket, work: 1.0 if ticket < 4 else answer).bind(3, 0)
    with pytest.raises(DelayError, match=r"client \d, ticket 4.*finite and >= 0.*[Cc]orrect"):
        af.run(tiny(), delays=model)


# ---- losses and churn ------------------------------------------------------------------------------------------


def test_a_lost_ticket_is_given_up_its_energy_counted_and_another_handed_out(tiny, scripted, events):
    run = af.run(tiny(clients=2, budget=Budget(updates=2)), delays=scripted({0: 0.5}, lost={0}))
    (lost,) = events(run, "lost")
    assert (lost.ticket, lost.time, lost.a, lost.b) == (0, 0.5, 0.5, 22.5)
    replacement = events(run, "dispatch")[2]
    assert (replacement.ticket, replacement.time, replacement.client) == (2, 0.5, lost.client)
    assert run.rounds["lost"][-1] == 1
    assert run.rounds["energy"][-1] == 22.5 + 2 * 45.0
    assert [e.ticket for e in events(run, "merge")] == [1, 2]


def test_with_a_timeout_a_lost_ticket_is_given_up_at_its_time(tiny, events):
    delays = Delays(compute=Constant(value=1.0), dropout=0.5, timeout=9.0)
    run = af.run(tiny(clients=4, budget=Budget(updates=20), delays=delays))
    handed_out = {e.ticket: e.time for e in events(run, "dispatch")}
    lost = events(run, "lost")
    assert len(lost) > 3
    assert {e.time - handed_out[e.ticket] for e in lost} == {9.0}


def test_a_barrier_round_closes_without_the_lost_ones(tiny, scripted, events):
    strategy = FedAvg(cohort_size=3, weighting="equal", work=WORK)
    delays = scripted({0: 4.0}, lost={0})
    run = af.run(tiny(strategy=strategy, budget=Budget(rounds=1)), delays=delays)
    (merge,) = events(run, "merge")
    assert (merge.time, json.loads(merge.detail)["tickets"]) == (4.0, [1, 2])
    assert json.loads(merge.detail)["weights"] == [0.5, 0.5]


def test_a_leaving_client_takes_its_ticket_with_it(tiny, events):
    run = af.run(tiny(clients=2, churn=(Churn(time=0.5, client=1, event="leave"),), budget=Budget(updates=3)))
    assert [(e.kind, e.time) for e in events(run, "leave")] == [("leave", 0.5)]
    assert {e.client for e in events(run, "report")} == {0}
    assert [e.time for e in events(run, "report")] == [1.0, 2.0, 3.0]
    assert run.rounds["lost"][-1] == 1


def test_whose_first_event_is_a_join_is_absent_until_then(tiny, events):
    churn = (Churn(time=2.5, client=1, event="join"),)
    run = af.run(tiny(clients=2, churn=churn, budget=Budget(updates=6)))
    by_client = {c: [e.time for e in events(run, "dispatch") if e.client == c] for c in (0, 1)}
    assert by_client == {0: [0.0, 1.0, 2.0, 3.0, 4.0], 1: [2.5, 3.5]}


def test_who_comes_back_begins_at_once_and_not_when_its_lost_work_would_have_ended(tiny, scripted, events):
    churn = (Churn(time=1.0, client=0, event="leave"), Churn(time=2.0, client=0, event="join"))
    run = af.run(tiny(clients=1, churn=churn, budget=Budget(updates=1)), delays=scripted({0: 100.0}))
    (report,) = events(run, "report")
    assert (report.ticket, report.time, report.a) == (1, 3.0, 1.0)


def test_churn_comes_before_arrivals_of_the_same_moment(tiny, events):
    run = af.run(tiny(clients=2, churn=(Churn(time=1.0, client=0, event="leave"),), budget=Budget(updates=2)))
    assert [e.client for e in events(run, "report")] == [1, 1]


def test_a_run_that_everybody_left_has_starved(tiny):
    churn = tuple(Churn(time=1.5, client=c, event="leave") for c in (0, 1))
    run = af.run(tiny(clients=2, churn=churn))
    assert run.verdict == "starved"
    assert "nobody is at work and nobody will join" in run.reason
    assert "churn" in run.advice
    assert run.evaluations["updates"].tolist() == [0, 2]


def test_a_run_that_everybody_left_waits_for_a_later_join(tiny, events):
    churn = (*(Churn(time=1.5, client=c, event="leave") for c in (0, 1)), Churn(time=50.0, client=1, event="join"))
    run = af.run(tiny(clients=2, churn=churn, budget=Budget(updates=4)))
    assert run.verdict == "finished"
    assert [(e.client, e.time) for e in events(run, "report")][2:] == [(1, 51.0), (1, 52.0)]


# ---- the end ---------------------------------------------------------------------------------------------------


def test_what_arrives_after_the_time_budget_is_not_merged_and_the_clock_stops_there(tiny, scripted, events):
    experiment = tiny(budget=Budget(elapsed=4.0))
    run = af.run(experiment, delays=scripted(SECONDS | {6: 50.0, 7: 50.0}))
    assert [e.time for e in events(run, "report")] == [1.0, 2.0, 3.0, 3.0]
    (stop,) = events(run, "stop")
    assert (stop.time, run.reason) == (4.0, "the time budget of 4 s is spent")
    assert run.verdict == "finished"
    # The first round ended at 3 s and was measured then; the odd update after it is measured at the end.
    assert list(zip(run.evaluations["updates"], run.evaluations["elapsed"], strict=True)) == [(0, 0), (3, 3), (4, 4)]


def test_what_arrives_exactly_at_the_time_budget_is_merged(tiny, scripted, events):
    run = af.run(tiny(budget=Budget(elapsed=3.0)), delays=scripted(SECONDS))
    assert len(events(run, "merge")) == 4


def test_a_model_measured_when_it_was_merged_keeps_that_moment(tiny, scripted):
    run = af.run(tiny(budget=Budget(elapsed=2.5)), delays=scripted())
    assert run.evaluations["updates"].tolist() == [0, 3, 6]
    assert run.evaluations["elapsed"].tolist() == [0.0, 1.0, 2.0]


def test_a_run_ends_in_the_middle_of_a_round_if_the_updates_say_so(tiny):
    run = af.run(tiny(budget=Budget(updates=4)))
    assert run.evaluations["updates"].tolist() == [0, 3, 4]
    assert run.rounds["updates"].tolist() == [3]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("learning_rate", [1.0, 1e300])
def test_divergence_is_a_verdict_and_the_run_is_kept(tiny, tmp_path, learning_rate):
    strategy = AFL(concurrency=3, aggregate="delta_sum", work=replace(WORK, learning_rate=learning_rate, epochs=20))
    path = tmp_path / "run.sqlite"
    af.run(tiny(strategy=strategy, budget=Budget(rounds=50)), out=path).journal.close()
    run = af.load(path)
    assert run.verdict == "diverged"
    assert run.reason.startswith("diverged: the model's norm is")
    assert "learning_rate" in run.advice
    assert len(run.rounds["round"]) < 50
    assert run.evaluations["updates"][-1] == run.rounds["updates"][-1]
    texts = [text for (text,) in run.journal._query("SELECT metrics FROM evaluations")]
    texts += [state for (state,) in run.journal._query("SELECT state FROM checkpoints")]
    texts += [value for (value,) in run.journal._query("SELECT value FROM header")]
    for text in texts:
        json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert af.verify(path).ok


# ---- measuring -------------------------------------------------------------------------------------------------


def test_measuring_by_updates(tiny):
    run = af.run(tiny(evaluation=Evaluation(every=2, unit="update"), budget=Budget(updates=7)))
    assert run.evaluations["updates"].tolist() == [0, 2, 4, 6, 7]
    assert run.evaluations["round"].tolist() == [0, 0, 1, 2, 2]


def test_measuring_by_updates_when_several_merges_come_at_once(tiny):
    """The scripts merge a whole cohort one by one at the same moment: each merge has its own count."""
    strategy = PublishedScripts(cohort_size=5, work=replace(WORK, start="own"))
    experiment = tiny(clients=5, strategy=strategy, budget=Budget(rounds=2))
    run = af.run(replace(experiment, evaluation=Evaluation(every=2, unit="update")))
    assert run.evaluations["updates"].tolist() == [0, 2, 4, 6, 8, 10]
    assert run.evaluations["version"].tolist() == [0, 2, 4, 6, 8, 10]
    assert run.evaluations["round"].tolist() == [0, 0, 0, 1, 1, 2]
    assert len(set(run.evaluations["objective"].tolist())) == 6


def test_measuring_by_updates_when_a_merge_takes_several(tiny):
    strategy = FedAvg(cohort_size=3, work=WORK)
    experiment = tiny(strategy=strategy, evaluation=Evaluation(every=2, unit="update"), budget=Budget(rounds=4))
    assert af.run(experiment).evaluations["updates"].tolist() == [0, 3, 6, 9, 12]


def test_every_zero_measures_start_and_end_only(tiny):
    run = af.run(tiny(evaluation=Evaluation(every=0)))
    assert run.evaluations["updates"].tolist() == [0, 6]


# ---- the oracle ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delays", [Delays(), Delays(compute=Exponential(mean=1.0), upload=Exponential(mean=0.2))])
@pytest.mark.parametrize("seed", [0, 5])
def test_late_batched_training_equals_a_naive_simulator_that_trains_one_by_one(tiny, events, naive_afl, delays, seed):
    experiment = tiny(clients=7, delays=delays, seed=seed, budget=Budget(updates=60))
    run = af.run(experiment, threads=2)
    first = [e.client for e in events(run, "dispatch")[:7]]
    params, merges = naive_afl(experiment.problem(), delays.bind(7, seed), first, WORK, seed, 60)
    assert [(e.ticket, e.client, e.time) for e in events(run, "merge")] == [(t, c, s) for t, c, _, _, s, _ in merges]
    assert run.params.tobytes() == params.tobytes()
    stale = np.array([s for *_, s in merges[: 7 * len(run.rounds["round"])]]).reshape(-1, 7)
    np.testing.assert_allclose(run.rounds["staleness_mean"], stale.mean(axis=1), rtol=1e-12)
