"""Over-selection: a trace by hand, its limit FedAvg, cancelled tickets, and rounds that are short at the deadline."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asyncfed as af
from asyncfed.analysis.participation import predicted_participation
from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Budget, Work
from asyncfed.delays import Delays, Exponential
from asyncfed.strategies import FedAvg, OverSelection
from asyncfed.strategies.samplers import ShortestQueue, ShuffledCycle, UniformAll
from asyncfed.testing import check_strategy

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_a_trace_by_hand(clock_run):
    """K = 2 of 3 asked. Clients take 1, 2, 5 s, add 4, 8, 100 and have 1, 3, 9 samples."""
    strategy = OverSelection(cohort_size=2, over_selection=0.5)
    run = clock_run(strategy, seconds=[1.0, 2.0, 5.0], moves=[4.0, 8.0, 100.0], num_examples=[1, 3, 9])
    assert run.at_work() == [0, 1, 2]
    assert run.run(2.0).log == [
        (2.0, "merge", [0, 1], 7.0),  # (1 * 4 + 3 * 8) / 4
        (2.0, "cancel", [2], 7.0),
    ]
    assert run.at_work() == [0, 1, 2]  # the cancelled one begins anew, from x = 7
    assert run.run(4.0).log[2:] == [(4.0, "merge", [0, 1], 14.0), (4.0, "cancel", [2], 14.0)]  # 7 + 7
    run.lose(1)
    run.run(8.0)
    assert run.log[4:] == []  # client 0 is there since 5 s; the second one is client 2, at 9 s
    assert run.run(9.0).log[4:] == [(9.0, "merge", [0, 2], pytest.approx(14.0 + (4.0 + 9 * 100.0) / 10))]


def test_the_deadline_merges_what_is_there(clock_run):
    strategy = OverSelection(cohort_size=2, over_selection=0.5, deadline=1.5, weighting="equal")
    run = clock_run(strategy, seconds=[1.0, 2.0, 5.0], moves=[4.0, 8.0, 100.0]).run(1.5)
    assert sorted(run.log) == [(1.5, "cancel", [1], 4.0), (1.5, "cancel", [2], 4.0), (1.5, "merge", [0], 4.0)]
    assert run.at_work() == [0, 1, 2]
    assert run.run(3.0).log[3] == (3.0, "merge", [0], 8.0)


def test_too_few_at_the_deadline_are_waited_for(clock_run):
    strategy = OverSelection(cohort_size=3, over_selection=0.0, deadline=1.5, fewest_reports=2, weighting="equal")
    run = clock_run(strategy, seconds=[1.0, 2.0, 5.0], moves=[4.0, 8.0, 100.0]).run(2.0)
    assert run.log == [(2.0, "merge", [0, 1], 6.0), (2.0, "cancel", [2], 6.0)]
    run.run(2.5)  # the timer of the first round means nothing to the second
    assert run.at_work() == [0, 1, 2]


def test_too_few_at_the_deadline_are_abandoned(clock_run):
    strategy = OverSelection(
        cohort_size=3, over_selection=0.0, deadline=1.5, fewest_reports=2, when_short="abandon", weighting="equal"
    )
    run = clock_run(strategy, seconds=[1.0, 2.0, 5.0], moves=[4.0, 8.0, 100.0]).run(1.5)
    assert sorted(run.log) == [(1.5, "cancel", [1], 0.0), (1.5, "cancel", [2], 0.0), (1.5, "drop", [0], 0.0)]
    assert (run.server.version, run.at_work()) == (0, [0, 1, 2])
    run.seconds[1] = 1.25
    run.run(3.0)  # the tickets of the second round were timed before: again too few
    assert run.run(4.5).log[-2:] == [(4.5, "merge", [0, 1], 6.0), (4.5, "cancel", [2], 6.0)]


def test_a_deadline_that_nobody_meets_ends_the_run(clock_run):
    run = clock_run(OverSelection(cohort_size=2, deadline=0.5, when_short="abandon"), seconds=[1.0, 2.0, 5.0])
    run.run(1000.0)
    assert run.server.stopped.startswith("100 rounds in a row had fewer than 1 reports at the deadline of 0.5 s. Raise")
    assert run.server.version == 0


def test_if_all_others_are_lost_clients_are_asked_from_the_same_model(clock_run):
    run = clock_run(
        OverSelection(cohort_size=2, over_selection=0.0, fewest_reports=2), seconds=[1.0, 2.0], moves=[4.0, 8.0]
    )
    run.run(1.0)
    run.lose(1)
    assert run.at_work() != []  # one more is asked, whichever it is
    assert run.server.version == 0
    run.run(10.0)
    assert run.server.version > 0


def experiment(strategy, seed, updates=60):
    return af.Experiment(
        seed=seed,
        num_clients=6,
        data=af.data.PaperRegression(num_samples=60),
        strategy=strategy,
        delays=Delays(compute=Exponential(mean=1.0)),
        budget=Budget(updates=updates),
    )


@pytest.mark.parametrize("weighting", ["samples", "equal"])
def test_without_over_selection_and_deadline_it_is_fedavg_to_the_last_bit(weighting):
    for seed in range(2):
        one = af.run(experiment(FedAvg(cohort_size=4, weighting=weighting, work=WORK), seed), threads=1)
        strategy = OverSelection(cohort_size=4, over_selection=0.0, weighting=weighting, work=WORK)
        other = af.run(experiment(strategy, seed), threads=1)
        assert one.params.tobytes() == other.params.tobytes()
        assert one.rounds["elapsed"][-1] == other.rounds["elapsed"][-1]


@given(
    seconds=st.lists(st.floats(0.1, 10.0), min_size=4, max_size=6),
    deadline=st.floats(0.1, 5.0),
    fewest=st.integers(1, 2),
    when_short=st.sampled_from(["wait", "abandon"]),
)
@settings(max_examples=12, deadline=None)
def test_no_cancelled_ticket_is_merged_and_nothing_hangs(clock_run, seconds, deadline, fewest, when_short):
    strategy = OverSelection(
        cohort_size=3, over_selection=0.3, deadline=deadline, fewest_reports=fewest, when_short=when_short
    )
    run = clock_run(strategy, seconds).run(60.0)
    merged = [ticket for merge in run.merges for ticket in merge.tickets]
    assert not run.cancelled & set(merged)
    assert len(merged) == len(set(merged))
    assert all(fewest <= len(merge.tickets) <= 3 and sum(merge.weights) == pytest.approx(1) for merge in run.merges)
    assert run.server.stopped or run.server.version > 0 or when_short == "abandon"
    assert run.server.stopped or run.at_work()


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [ShuffledCycle(), UniformAll(), ShortestQueue()])
def test_it_passes_the_check(sampler):
    check_strategy(OverSelection(cohort_size=3, deadline=1.0, fewest_reports=2, sampler=sampler), seed=1)


def test_participation_has_a_formula_only_where_all_are_waited_for():
    planned = experiment(OverSelection(cohort_size=3, over_selection=0.0, work=WORK), 0)
    assert predicted_participation(planned).dispatch == "cohort"
    with pytest.raises(ConfigError, match="whom OverSelection dispatches or merges depends on who arrives when"):
        predicted_participation(af.replace(planned, strategy=OverSelection(cohort_size=3, work=WORK)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"over_selection": -0.1}, r"strategy.over_selection is -0.1; it must be at least 0, and finite"),
        ({"deadline": 0.0}, r"strategy.deadline is 0.0; it must be a positive number"),
        ({"fewest_reports": 0}, r"strategy.fewest_reports is 0; it must be at least 1 and at most cohort_size, 5"),
        ({"fewest_reports": 6}, r"strategy.fewest_reports is 6; it must be at least 1 and at most cohort_size, 5"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        OverSelection(**settings)


def test_more_clients_than_there_are_is_refused():
    with pytest.raises(ConfigError, match=r"13 clients are asked in a round, but there are only 12. Lower one of them"):
        OverSelection(cohort_size=10).check(12)
