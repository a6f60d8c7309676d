"""MindFlayer SGD: a trace by hand, its limit, that it divides by what should finish, and that a run can be trusted."""

from math import inf

import numpy as np
import pytest

import asyncfed as af
from asyncfed.core.errors import ConfigError
from asyncfed.core.server import Server
from asyncfed.core.types import Budget, Cancel, Dispatch, Drop, Merge, Report, Wake, Work
from asyncfed.delays import Delays, Exponential, FunctionDelays, Pareto
from asyncfed.strategies import FedAvg, MindFlayer

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def outputs_of(outputs, kind):
    return [output for output in outputs if isinstance(output, kind)]


def arrive(server, client, duration=1.0):
    ticket = next(t for t, d in server.outstanding.items() if d.client == client)
    return server.receive(Report(ticket, client, 0.0, duration, 1))


def test_by_hand():
    strategy = MindFlayer(trials=(2, 1), cut_off=(3.0, 5.0), finish_probability=(0.75, 0.5), server_lr=0.5)
    server = Server(strategy, [1, 1])
    assert [(w.after, w.number) for w in outputs_of(server.start(), Wake)] == [(3.0, 0), (5.0, 1)]
    outputs = arrive(server, 0)  # the first of its two trials; the second begins at once, at the same model
    assert [(w.after, w.number) for w in outputs_of(outputs, Wake)] == [(3.0, 2)]
    assert [d.base_version for d in outputs_of(outputs, Dispatch)] == [0]
    assert server.wake(0, 3.0) == []  # the timer of a trial that has finished
    assert [c.ticket for c in outputs_of(server.wake(2, 4.0), Cancel)] == [2]  # cut off; client 0 has no trial left
    assert arrive(server, 1)[0] == Merge((0, 1), (0.25, 0.25), 1.0, "delta", None, True)  # 0.5 / (0.75 * 2 + 0.5)
    assert (server.version, server.round) == (1, 1)
    server.wake(3, 9.0)
    server.wake(5, 12.0)  # both trials of client 0 are cut off
    outputs = server.wake(4, 12.0)  # and that of client 1: nothing finished, so the model stays, and all try again
    assert not outputs_of(outputs, Merge)
    assert [d.client for d in outputs_of(outputs, Dispatch)] == [0, 1]
    assert server.version == 1


def test_the_times_of_the_timers_are_the_runs_own(tiny, events):
    seconds = {0: 1.0, 1: 9.0, 2: 1.0}
    strategy = MindFlayer(cut_off=2.0, finish_probability=0.5, work=WORK)
    delays = FunctionDelays(lambda client, ticket, work: seconds.get(ticket, 0.5)).bind(3, 0)
    run = af.run(tiny(clients=3, strategy=strategy, budget=Budget(rounds=2)), delays=delays)
    assert [(cancel.time, cancel.ticket) for cancel in events(run, "cancel")] == [(2.0, 1)]
    assert [merge.time for merge in events(run, "merge")] == [2.0, 2.5]


def test_a_trial_that_ends_with_its_time_has_finished(tiny, events):
    strategy = MindFlayer(cut_off=2.0, finish_probability=1.0, work=WORK)
    delays = FunctionDelays(lambda client, ticket, work: 2.0).bind(3, 0)
    run = af.run(tiny(clients=3, strategy=strategy, budget=Budget(rounds=2)), delays=delays)
    assert events(run, "cancel") == []


@pytest.mark.parametrize("probability", [None, 1.0])
def test_without_a_cut_off_it_is_a_minibatch_with_a_fixed_allocation(tiny, probability):
    """One full batch each leaves nothing to chance: then it is FedAvg with equal weights."""
    full = af.replace(WORK, batch_size=8)
    delays = Delays(compute=Exponential(mean=1.0))
    strategies = (
        MindFlayer(cut_off=inf, finish_probability=probability, work=full),
        FedAvg(cohort_size=4, weighting="equal", work=full),
        MindFlayer(trials=3, cut_off=inf, finish_probability=probability, work=full),
    )
    one, fedavg, three = [
        af.run(tiny(clients=4, strategy=s, delays=delays, budget=Budget(rounds=6), init="torch")) for s in strategies
    ]
    np.testing.assert_allclose(one.params, fedavg.params, rtol=1e-9)
    np.testing.assert_allclose(three.params, fedavg.params, rtol=1e-9)
    assert three.rounds["updates"][-1] == 6 * 12


def test_its_mean_step_is_that_of_all_trials_and_the_realised_count_would_not_do():
    """Change 1 from everybody: the mean of sum / B is 1, however many finish together."""
    strategy = MindFlayer(trials=2, cut_off=1.0, finish_probability=0.5)
    finished, steps = 0, 2000
    server = Server(strategy, [1])
    server.start()
    rng = np.random.default_rng(1)
    mean = 0.0
    for _ in range(steps):
        for _ in range(2):
            ticket, dispatch = next(iter(server.outstanding.items()))
            number = ticket  # nothing is lost, so a trial's number is its ticket's
            if rng.random() < 0.5:
                outputs = server.receive(Report(ticket, dispatch.client, 0.0, 0.5, 1))
                finished += 1
            else:
                outputs = server.wake(number, 0.0)
            mean += sum(sum(merge.weights) for merge in outputs_of(outputs, Merge)) / steps
    assert mean == pytest.approx(finished / steps)  # B = 1: each finished change counts 1
    assert mean == pytest.approx(1.0, abs=0.06)
    assert server.version / steps == pytest.approx(0.75, abs=0.06)  # dividing by the count would give this mean


def test_the_cut_off_and_the_probability_that_are_not_given():
    strategy = MindFlayer(warm_up=3, slack=2.0)
    server = Server(strategy, [1])
    outputs = server.start()
    for seconds in (1.0, 9.0, 2.0):
        assert not outputs_of(outputs, Wake)
        outputs = arrive(server, 0, seconds)
        assert outputs_of(outputs, Merge)[0].weights == (1.0,)  # all have finished so far
    assert [wake.after for wake in outputs_of(outputs, Wake)] == [4.0]  # twice the median, 2
    server.wake(3, 4.0)
    outputs = arrive(server, 0)  # 3 of 4 finished before this step: p = (1 + 3) / (1 + 4)
    assert outputs_of(outputs, Merge)[0].weights == (1 / 0.8,)


def test_a_client_that_has_become_slower_is_measured_anew():
    server = Server(MindFlayer(warm_up=2, slack=2.0), [1])
    server.start()
    arrive(server, 0, 1.0)
    outputs = arrive(server, 0, 1.0)
    for number in (2, 3):  # from now on it takes 5 s: two trials in a row are cut off after 2 s
        assert [wake.after for wake in outputs_of(outputs, Wake)] == [2.0]
        outputs = server.wake(number, 0.0)
    for _ in range(2):  # and two are not, however long they take
        assert not outputs_of(outputs, Wake)
        outputs = arrive(server, 0, 5.0)
    assert [wake.after for wake in outputs_of(outputs, Wake)] == [10.0]


def test_a_lost_trial_has_not_finished():
    server = Server(MindFlayer(trials=2), [1, 1])
    server.start()
    assert [d.client for d in outputs_of(server.lose(1), Dispatch)] == [1]  # its second trial
    assert server.lose(2) == []  # and it has none left
    arrive(server, 0)
    assert outputs_of(arrive(server, 0), Merge)[0].weights == (0.25, 0.25)  # four were expected to finish


def test_who_leaves_is_out_of_the_step():
    server = Server(MindFlayer(cut_off=1.0, finish_probability=0.5), [1, 1, 1])
    server.start()
    arrive(server, 0)
    assert [type(output) for output in server.leave(0)] == [Drop]
    assert server.join(7, 1) == []  # with the next step
    arrive(server, 1)
    outputs = arrive(server, 2)
    assert outputs_of(outputs, Merge)[0].weights == (1.0, 1.0)  # B = 0.5 + 0.5
    assert [d.client for d in outputs_of(outputs, Dispatch)] == [1, 2, 7]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"trials": 0}, r"strategy\.trials is 0; each must be a whole number of at least 1"),
        ({"trials": (2, 0)}, r"strategy\.trials is \(2, 0\)"),
        ({"cut_off": 0.0}, r"strategy\.cut_off is 0\.0; each must be above 0 seconds"),
        ({"finish_probability": 1.5}, r"strategy\.finish_probability is 1\.5; each must be above 0 and at most 1"),
        ({"warm_up": 0}, r"strategy\.warm_up is 0; a median needs at least 1 duration"),
        ({"slack": inf}, r"strategy\.slack is inf; it must be a positive number"),
    ],
)
def test_refusals(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        MindFlayer(**settings)


@pytest.mark.parametrize("cut_off", [None, (0.5, inf)])
def test_threads_interruptions_and_replay(tiny, trusted, cut_off):
    delays = Delays(compute=Pareto(minimum=0.4, shape=1.2), dropout=0.05)
    strategy = MindFlayer(trials=2, cut_off=cut_off, warm_up=2, work=WORK)
    experiment = tiny(clients=4, strategy=strategy, delays=delays, budget=Budget(updates=60), init="torch")
    assert af.from_toml(af.to_toml(experiment)) == experiment
    trusted(experiment)
