"""ACE and ACED: traces by hand, the warm-up and its end under loss and churn, and where they lead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.record import replace
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Merge, Report, Work
from asyncfed.engine.plan import Churn
from asyncfed.problems import LinearModel
from asyncfed.rules import TableMean
from asyncfed.strategies import ACE, AsyncSGD, algorithms
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.testing import check_strategy


def test_a_trace_by_hand(hand_run):
    run = hand_run(ACE(concurrency=3, server_lr=0.5))
    assert run.arrive(0, 3.0) == (0, "hold", 0.0)  # the warm-up: no step until all three have reported
    assert run.arrive(2, 9.0) == (0, "hold", 0.0)
    assert run.server.in_flight == 1
    assert run.arrive(1, 6.0) == (0, "merge", 3.0)  # h = (3 + 6 + 9)/3 = 6, of which a half
    assert (run.server.version, run.server.round, run.server.updates) == (1, 1, 3)
    assert run.arrive(0, 6.0) == (0, "merge", 6.0)  # from 3: D = 3, h = (3 + 6 + 9)/3 = 6
    assert run.arrive(0, 18.0) == (0, "merge", 10.5)  # from 6: D = 12, h = 6 + (12 - 3)/3 = 9
    assert run.arrive(1, 0.0) == (2, "merge", 13.5)  # from 3: D = -3, h = 9 + (-3 - 6)/3 = 6


def test_by_default_so_many_arrivals_as_clients_are_a_round_of_fedavg(hand_run):
    run = hand_run(ACE(concurrency=2), num_examples=(1, 1))
    run.arrive(0, 4.0)
    assert run.arrive(1, 8.0) == (0, "merge", 3.0)  # h = 6, eta = 1/2


def test_aceds_trace_by_hand(hand_run):
    run = hand_run(ACE(concurrency=2, server_lr=1.0, rule=TableMean(max_age=1)), num_examples=(1, 1))
    run.arrive(0, 2.0)
    assert run.arrive(1, 4.0) == (0, "merge", 3.0)  # version 0: h = 3
    assert run.arrive(0, 4.0) == (0, "merge", 5.5)  # version 1, D = 1; the other's is 1 old: h = (1 + 4)/2
    assert run.arrive(0, 6.5) == (0, "merge", 6.5)  # version 2, D = 1; the other's is 2 old and out: h = 1
    assert run.arrive(1, 5.0) == (2, "merge", 7.5)  # version 3, D = 2 made from 1: out at once; h = 1


# ---- the warm-up ------------------------------------------------------------------------------------------------


def test_the_warm_up_asks_everybody_once_with_few_tickets(hand_run):
    run = hand_run(ACE(concurrency=2, server_lr=1.0), num_examples=(1,) * 5)
    asked = []
    while not run.merges:
        client = next(iter(run.server.outstanding.values())).client
        asked.append(client)
        run.arrive(client, float(client))
    assert asked == [0, 1, 2, 3, 4]
    assert run.x == 2.0
    assert run.server.in_flight == 2


def test_a_lost_client_is_not_waited_for_and_counts_from_its_first_report_on(hand_run):
    run = hand_run(ACE(concurrency=3, server_lr=1.0))
    run.arrive(0, 2.0)
    assert run.lose(1) == ("hold", 0.0)
    assert run.arrive(2, 4.0) == (0, "merge", 3.0)  # h = (2 + 4)/2
    assert run.arrive(1, 9.0) == (0, "merge", 7.0)  # D = 6, h = (2 + 6 + 4)/3


def test_a_warm_up_of_which_nothing_came_back_ends_too(hand_run):
    run = hand_run(ACE(concurrency=2, server_lr=1.0), num_examples=(1, 1))
    run.lose(0)
    run.lose(1)
    assert run.server.in_flight == 2
    assert run.arrive(0, 5.0) == (0, "merge", 5.0)


def test_who_leaves_in_the_warm_up_is_not_waited_for_and_who_joins_is_not_either(hand_run):
    run = hand_run(ACE(concurrency=1, server_lr=1.0), num_examples=(1, 1, 1))
    run.join(7)
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    run.leave(2)  # was not asked yet
    run.leave(0)  # has reported: its change stays
    assert run.arrive(1, 2.0) == (0, "merge", 3.0)
    late = next(iter(run.server.outstanding.values())).client
    assert late in (1, 7)


def test_the_last_one_to_be_asked_may_leave(hand_run):
    run = hand_run(ACE(concurrency=1, server_lr=1.0), num_examples=(1, 1))
    run.arrive(0, 4.0)
    assert run.leave(1)[0] == "merge"
    assert run.x == 4.0


def test_who_left_counts_with_its_last_change(hand_run):
    run = hand_run(ACE(concurrency=2, server_lr=1.0), num_examples=(1, 1))
    run.arrive(0, 2.0)
    run.arrive(1, 4.0)  # x = 3
    run.leave(1)
    assert run.arrive(0, 3.0) == (0, "merge", 5.0)  # D = 0, h = (0 + 4)/2
    run.join(1)
    assert run.arrive(1, 5.0) == (0, "merge", 5.0)  # D = 0, h = 0


@settings(max_examples=25)
@given(st.integers(1, 6), st.lists(st.integers(0, 99), min_size=80, max_size=80))
def test_the_warm_up_ends_whatever_is_lost_and_whoever_comes_and_goes(concurrency, lots):
    """Nobody is asked twice in it, every report in it is merged once, and it ends when all tickets are back."""
    server = Server(ACE(concurrency=concurrency), [1] * 6, seed=0)
    asked, reported, merged = [], [], None
    outputs = server.start()
    for lot in lots:
        for output in outputs:
            if isinstance(output, Merge) and merged is None:
                merged = output
            if isinstance(output, Dispatch) and merged is None:
                asked.append(output.client)
        if merged is not None or len(asked) > len(set(asked)):
            break
        away = [client for client in range(6) if client not in server.clients]
        tickets = list(server.outstanding)
        if lot < 10 and len(server.clients) > 1:
            outputs = server.leave(list(server.clients)[lot % len(server.clients)])
        elif lot < 20 and away:
            outputs = server.join(away[0], 1)
        elif lot < 40:
            outputs = server.lose(tickets[lot % len(tickets)])
        else:
            ticket = tickets[lot % len(tickets)]
            reported.append(ticket)
            outputs = server.receive(Report(ticket, server.outstanding[ticket].client, 0.0, 1.0, 1))
    if merged is None:  # all were lost: then it is over too, and clients are asked again
        assert not reported
    else:
        assert sorted(merged.tickets) == sorted(reported)


# ---- where they lead --------------------------------------------------------------------------------------------

STEP = Work(batch_size=10**6, learning_rate=0.05)
"""One step with all rows."""


def experiment(strategy, **how):
    """Clients with models of their own, of which one is ten times slower."""
    settings = {
        "num_clients": 6,
        "data": af.data.PaperRegression(num_samples=120),
        "split": af.data.ConceptShift(),
        "model": LinearModel(l2=0.01),
        "delays": af.delays.stragglers(),
        "budget": af.Budget(updates=2000),
        "evaluation": af.Evaluation(every=1000),
    }
    return af.Experiment(strategy=strategy, **{**settings, **how})


def distance(run_of):
    """From the optimum of the mean of all clients, as a part of its length."""
    optimum = run_of.problem().optimum()
    return np.linalg.norm(af.run(run_of).params - optimum) / np.linalg.norm(optimum)


def test_it_finds_the_optimum_where_asynchronous_sgd_finds_the_fast_clients():
    assert distance(experiment(ACE(concurrency=6, work=STEP))) < 1e-6
    assert distance(experiment(AsyncSGD(concurrency=6, server_lr=1 / 6, work=STEP))) > 0.01


@pytest.mark.slow
def test_it_does_so_under_loss_and_churn():
    delays = replace(af.delays.stragglers(), dropout=0.2)
    churn = [
        Churn(time=40.0 * number + moment, client=number % 6, event=event)
        for number in range(1, 12)
        for moment, event in ((0.0, "leave"), (25.0, "join"))
    ]
    run = experiment(ACE(concurrency=3, work=STEP), delays=delays, churn=tuple(churn))
    assert distance(run) < 1e-6


@pytest.mark.parametrize("max_age", [10**6, 4])
def test_aced_is_ace_unless_somebody_is_too_late(max_age):
    strategy = ACE(concurrency=6, work=STEP)
    how = {"budget": af.Budget(updates=200)}
    plain, aged = (af.run(experiment(s, **how)) for s in (strategy, replace(strategy, rule=TableMean(max_age=max_age))))
    assert (plain.sha256["params"] == aged.sha256["params"]) == (max_age > 4)


def test_the_names_and_what_is_refused():
    made = {name: algorithms()[name].make(4, STEP, ConstantRate()) for name in ("ace", "aced")}
    assert made["ace"] == ACE(concurrency=4, work=STEP)
    assert made["aced"] == ACE(concurrency=4, work=STEP, rule=TableMean(max_age=80))
    with pytest.raises(ConfigError, match=r"strategy\.server_lr is 0\.0; it must be a positive number"):
        ACE(server_lr=0.0)
    with pytest.raises(ConfigError, match=r"work\.start is own, which the rule table_mean"):
        ACE(concurrency=3, work=Work(start="own")).check(3)
    for concurrency in (1, 5):
        check_strategy(ACE(concurrency=concurrency), seed=concurrency)
