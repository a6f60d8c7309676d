"""Each strategy's rule against arithmetic done by hand, in numbers that binary floating point holds exactly.

Three clients, one parameter, x = 0 at the start. v counts merges. Where three tickets are in flight each client holds
one, and the client that has just reported is the only idle one, so it is handed the next: nothing is left to chance.
"""

import pytest

from asyncfed.core.types import Work
from asyncfed.strategies import AFL, CyclicWeightTransfer, FedAsync, FedAvg, FedBuff, PublishedScripts
from asyncfed.strategies.discounts import Hinge, NoDiscount, Polynomial
from asyncfed.strategies.schedules import ConstantRate

HALVING = Polynomial(power=1.0)  # s(0) = 1, s(1) = 1/2, s(3) = 1/4


def test_afl_latest_is_the_mean_of_everyones_latest_model(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest"))
    # All hold version 0. The latest models are (0, 0, 0): nobody has been heard from, so all count as x0 = 0.
    assert run.arrive(0, 3.0) == (0, "merge", 1.0)  # (3 + 0 + 0)/3 = 1; v = 1; client 0 now holds v 1
    assert run.arrive(1, 6.0) == (1, "merge", 3.0)  # holds v 0, so 1 old; (3 + 6 + 0)/3 = 3; v = 2
    assert run.arrive(0, 9.0) == (1, "merge", 5.0)  # held v 1; 9 replaces 3: (9 + 6 + 0)/3 = 5; v = 3
    assert run.server.round == 1  # three updates are a round
    assert run.arrive(2, -3.0) == (3, "merge", 4.0)  # held v 0; (9 + 6 - 3)/3 = 4; v = 4
    assert run.arrive(0, 12.0) == (1, "merge", 5.0)  # held v 3; (12 + 6 - 3)/3 = 5; v = 5
    assert run.arrive(1, 0.0) == (3, "merge", 3.0)  # held v 2; (12 + 0 - 3)/3 = 3; v = 6
    assert (run.server.version, run.server.round, run.server.updates) == (6, 2, 6)


def test_afl_latest_by_samples_and_with_a_client_that_leaves(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest", weighting="samples"), num_examples=(1, 2, 1))
    assert run.arrive(0, 4.0) == (0, "merge", 1.0)  # (1*4 + 2*0 + 1*0)/4
    assert run.arrive(1, 6.0) == (1, "merge", 4.0)  # (4 + 12 + 0)/4
    assert run.arrive(2, 8.0) == (2, "merge", 6.0)  # (4 + 12 + 8)/4
    assert run.leave(1) == ("hold", 6.0)  # its ticket is lost; it stops counting with the next merge
    assert run.arrive(0, 2.0) == (2, "merge", 5.0)  # held v 1, v is 3; (2 + 8)/2
    assert run.arrive(2, 0.0) == (1, "merge", 1.0)  # (2 + 0)/2
    run.join(1, num_examples=2)  # back, but in the mean only from its next report on
    assert run.arrive(0, 6.0) == (1, "merge", 3.0)  # (6 + 0)/2
    assert run.arrive(1, 5.0) == (1, "merge", 4.0)  # (6 + 10 + 0)/4


def test_afl_latest_keeps_counting_a_client_that_was_away_between_two_merges(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest"))
    assert run.arrive(0, 3.0) == (0, "merge", 1.0)  # (3 + 0 + 0)/3
    assert run.leave(0) == ("hold", 1.0)
    assert run.join(0) == ("hold", 1.0)  # no merge noticed its absence; it is handed the model again
    assert run.arrive(1, 6.0) == (1, "merge", 3.0)  # (3 + 6 + 0)/3


def test_afl_mixing_moves_half_way_to_each_arrival(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="mixing", mixing=0.5))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # (0 + 8)/2
    assert run.arrive(1, 2.0) == (1, "merge", 3.0)  # (4 + 2)/2
    assert run.arrive(0, 5.0) == (1, "merge", 4.0)  # (3 + 5)/2
    assert run.arrive(2, 0.0) == (3, "merge", 2.0)  # (4 + 0)/2
    assert run.arrive(2, 10.0) == (0, "merge", 6.0)  # (2 + 10)/2
    assert run.arrive(1, 2.0) == (3, "merge", 4.0)  # (6 + 2)/2


def test_afl_delta_mean_takes_a_jth_of_each_delta_from_the_downloaded_model(hand_run):
    # J = 2 of 3 clients: tickets 0 and 1 first, then one per arrival. Deltas do not care whose they are.
    run = hand_run(AFL(concurrency=2, aggregate="delta_mean"))
    assert run.report(0, 4.0) == (0, "merge", 2.0)  # from 0: 0 + 4/2 = 2; v = 1; ticket 2 starts from 2
    assert run.report(2, 6.0) == (0, "merge", 4.0)  # from 2: 2 + 4/2 = 4; v = 2; ticket 3 starts from 4
    assert run.report(1, -4.0) == (2, "merge", 2.0)  # from 0, not from 4: 4 - 4/2 = 2; v = 3; ticket 4 from 2
    assert run.report(3, 8.0) == (1, "merge", 4.0)  # from 4: 2 + 4/2 = 4; v = 4; ticket 5 from 4
    assert run.report(4, 0.0) == (1, "merge", 3.0)  # from 2: 4 - 2/2 = 3; v = 5
    assert run.report(5, 4.0) == (1, "merge", 3.0)  # from 4: 3 + 0/2 = 3; v = 6
    assert run.server.round == 3


def test_afl_delta_sum_takes_each_delta_whole(hand_run):
    run = hand_run(AFL(concurrency=2, aggregate="delta_sum"))
    assert run.report(0, 4.0) == (0, "merge", 4.0)  # 0 + (4 - 0); ticket 2 starts from 4
    assert run.report(2, 6.0) == (0, "merge", 6.0)  # 4 + (6 - 4); ticket 3 from 6
    assert run.report(1, -4.0) == (2, "merge", 2.0)  # 6 + (-4 - 0); ticket 4 from 2
    assert run.report(3, 8.0) == (1, "merge", 4.0)  # 2 + (8 - 6); ticket 5 from 4
    assert run.report(4, 0.0) == (1, "merge", 2.0)  # 4 + (0 - 2)
    assert run.report(5, 4.0) == (1, "merge", 2.0)  # 2 + (4 - 4)


def test_afl_delta_by_samples_weighs_by_samples_over_their_mean(hand_run):
    # Samples (1, 2, 3), mean 2: a delta counts 1/2, 1 and 3/2 of itself.
    run = hand_run(AFL(concurrency=3, aggregate="delta_sum", weighting="samples"), num_examples=(1, 2, 3))
    assert run.arrive(0, 4.0) == (0, "merge", 2.0)  # 0 + 1/2 * 4
    assert run.arrive(1, 4.0) == (1, "merge", 6.0)  # 2 + 1 * 4
    assert run.arrive(2, 4.0) == (2, "merge", 12.0)  # 6 + 3/2 * 4
    assert run.arrive(0, 0.0) == (2, "merge", 11.0)  # held 2: 12 + 1/2 * (0 - 2)
    assert run.arrive(1, 7.0) == (2, "merge", 12.0)  # held 6: 11 + 1 * (7 - 6)
    assert run.arrive(2, 10.0) == (2, "merge", 9.0)  # held 12: 12 + 3/2 * (10 - 12)


def test_afl_drop_forgets_what_is_too_stale(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="mixing", max_staleness=1, when_stale="drop"))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # v = 1
    assert run.arrive(1, 2.0) == (1, "merge", 3.0)  # 1 old is within the bound; v = 2
    assert run.arrive(2, 100.0) == (2, "drop", 3.0)  # 2 old is not; client 2 is handed v 2 at once
    assert run.server.round == 0  # what is dropped does not count towards the round
    assert run.arrive(2, 5.0) == (0, "merge", 4.0)  # v = 3; the third merge ends the round
    assert run.server.round == 1
    assert run.arrive(0, 10.0) == (2, "drop", 4.0)  # held v 1
    assert run.arrive(1, 8.0) == (1, "merge", 6.0)  # held v 2; v = 4


def test_afl_damp_weakens_what_is_too_stale(hand_run):
    # Bound 0, so all staleness is excess: the weight is mixing * s(staleness), s = 1, 1/2, ., 1/4.
    run = hand_run(AFL(concurrency=3, aggregate="mixing", max_staleness=0, when_stale="damp", damping=HALVING))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # 1/2: 0/2 + 8/2
    assert run.arrive(1, 0.0) == (1, "merge", 3.0)  # 1/4: 3/4*4 + 0
    assert run.arrive(0, 7.0) == (1, "merge", 4.0)  # 1/4: 3/4*3 + 7/4
    assert run.arrive(2, 12.0) == (3, "merge", 5.0)  # 1/8: 7/8*4 + 12/8
    assert run.arrive(2, 9.0) == (0, "merge", 7.0)  # fresh again, so 1/2: 5/2 + 9/2
    assert run.arrive(1, -1.0) == (3, "merge", 6.0)  # 1/8: 7/8*7 - 1/8


def test_afl_damp_moves_a_latest_model_part_of_the_way(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest", max_staleness=0, when_stale="damp", damping=HALVING))
    assert run.arrive(0, 6.0) == (0, "merge", 2.0)  # (6, 0, 0)/3
    assert run.arrive(1, 12.0) == (1, "merge", 4.0)  # half of the way from 0 to 12: (6, 6, 0)/3
    assert run.arrive(1, 12.0) == (0, "merge", 6.0)  # fresh: all of it: (6, 12, 0)/3
    assert run.arrive(2, 12.0) == (3, "merge", 7.0)  # a quarter: (6, 12, 3)/3
    assert run.arrive(0, 0.0) == (3, "merge", 6.5)  # a quarter of the way from 6 to 0: (4.5, 12, 3)/3
    assert run.arrive(2, 9.0) == (1, "merge", 7.5)  # half of the way from 3 to 9: (4.5, 12, 6)/3


def test_afl_wait_holds_merges_back_for_the_laggard(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="delta_sum", max_staleness=1, when_stale="wait"))
    # A merge now makes those who hold v 0 one old: allowed.
    assert run.arrive(0, 2.0) == (0, "merge", 2.0)  # v = 1; client 0 holds v 1 (model 2)
    # A merge now would make client 2 (v 0) two old: client 1's delta 4 is held, and nobody is handed anything.
    assert run.arrive(1, 4.0) == (1, "hold", 2.0)
    assert run.arrive(0, 3.0) == (0, "hold", 2.0)  # delta 3 - 2 = 1, held too; only client 2 is at work
    assert len(run.server.outstanding) == 1
    # The laggard reports: deltas 4, 1 and -1 in one step.
    assert run.arrive(2, -1.0) == (1, "merge", 6.0)  # 2 + 4 + 1 - 1; v = 2; all three are handed v 2 (model 6)
    assert run.arrive(1, 7.0) == (0, "merge", 7.0)  # v = 3; the others are now one old
    assert run.lose(0) == ("hold", 7.0)  # client 0 is handed v 3 (model 7) instead
    assert run.arrive(0, 9.0) == (0, "hold", 7.0)  # client 2 holds v 2 and would be two old
    assert run.lose(2) == ("merge", 9.0)  # the laggard is gone: 7 + (9 - 7); v = 4
    # 1, then 3, then 1, then 1 updates: the fourth closed the first round and left one over, the sixth closed another.
    assert (run.server.version, run.server.round, run.server.updates) == (4, 2, 6)


def test_afl_wait_does_not_count_a_client_that_left(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest", max_staleness=0, when_stale="wait"))
    run.arrive(0, 3.0)
    run.arrive(1, 6.0)
    assert run.arrive(2, 9.0) == (0, "merge", 6.0)  # (3 + 6 + 9)/3
    assert run.arrive(0, 4.0) == (0, "hold", 6.0)
    assert run.arrive(1, 8.0) == (0, "hold", 6.0)
    assert run.leave(2) == ("merge", 6.0)  # its loss releases the merge, which no longer counts its 9: (4 + 8)/2


def test_fedavg_by_samples(hand_run):
    run = hand_run(FedAvg(cohort_size=3), num_examples=(1, 1, 2))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)
    assert run.arrive(1, 8.0) == (0, "hold", 0.0)
    assert run.arrive(2, 2.0) == (0, "merge", 4.0)  # (4 + 8 + 2*2)/4
    assert [run.start_of(client) for client in range(3)] == [4.0, 4.0, 4.0]
    assert run.arrive(2, 6.0) == (0, "hold", 4.0)
    assert run.arrive(0, 8.0) == (0, "hold", 4.0)
    assert run.arrive(1, 8.0) == (0, "merge", 7.0)  # (2*6 + 8 + 8)/4
    assert run.arrive(0, 1.0) == (0, "hold", 7.0)
    assert run.lose(1) == ("hold", 7.0)
    assert run.arrive(2, 4.0) == (0, "merge", 3.0)  # of those who reported: (1 + 2*4)/3
    assert (run.server.version, run.server.round, run.server.updates) == (3, 3, 8)


def test_fedavg_counts_a_client_without_samples_as_nothing_unless_all_are(hand_run):
    run = hand_run(FedAvg(cohort_size=3), num_examples=(0, 3, 1))
    for client, model in ((0, 100.0), (1, 4.0)):
        run.arrive(client, model)
    assert run.arrive(2, 8.0) == (0, "merge", 5.0)  # (0*100 + 3*4 + 1*8)/4
    nobody = hand_run(FedAvg(cohort_size=2), num_examples=(0, 0))
    nobody.arrive(0, 2.0)
    assert nobody.arrive(1, 4.0) == (0, "merge", 3.0)


def test_fedavg_equal(hand_run):
    run = hand_run(FedAvg(cohort_size=2, weighting="equal"), num_examples=(1, 7))
    run.arrive(0, 4.0)
    assert run.arrive(1, 8.0) == (0, "merge", 6.0)  # (4 + 8)/2
    run.arrive(1, 2.0)
    assert run.arrive(0, 3.0) == (0, "merge", 2.5)  # (2 + 3)/2
    run.arrive(1, 2.0)
    assert run.lose(0) == ("merge", 2.0)  # the only one left


def test_fedasync_polynomial(hand_run):
    run = hand_run(FedAsync(concurrency=3, mixing=0.5, discount=HALVING))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # a = 1/2: 0/2 + 8/2
    assert run.arrive(1, 0.0) == (1, "merge", 3.0)  # a = 1/4: 3/4*4 + 0
    assert run.arrive(0, 7.0) == (1, "merge", 4.0)  # a = 1/4: 3/4*3 + 7/4
    assert run.arrive(2, 12.0) == (3, "merge", 5.0)  # a = 1/8: 7/8*4 + 12/8
    assert run.arrive(2, 9.0) == (0, "merge", 7.0)  # a = 1/2 again: the discount does not compound
    assert run.arrive(1, -1.0) == (3, "merge", 6.0)  # a = 1/8: 7/8*7 - 1/8


def test_fedasync_hinge(hand_run):
    # s = 1 up to 1 version, then 1/((tau - 1) + 1): s(2) = 1/2, s(4) = 1/4.
    run = hand_run(FedAsync(concurrency=3, mixing=0.5, discount=Hinge(slope=1.0, grace=1)))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)  # a = 1/2
    assert run.arrive(1, 0.0) == (1, "merge", 2.0)  # a = 1/2
    assert run.arrive(2, 10.0) == (2, "merge", 4.0)  # a = 1/4: 3/4*2 + 10/4
    assert run.arrive(0, 0.0) == (2, "merge", 3.0)  # a = 1/4: 3/4*4
    assert run.arrive(2, 5.0) == (1, "merge", 4.0)  # a = 1/2
    assert run.arrive(0, 6.0) == (1, "merge", 5.0)  # a = 1/2
    assert run.arrive(1, 13.0) == (4, "merge", 6.0)  # a = 1/8: 7/8*5 + 13/8


def test_fedasync_constant(hand_run):
    run = hand_run(FedAsync(concurrency=3, mixing=0.25, discount=NoDiscount()))
    assert run.arrive(0, 16.0) == (0, "merge", 4.0)  # 3/4*0 + 16/4
    assert run.arrive(1, 8.0) == (1, "merge", 5.0)  # 3/4*4 + 8/4
    assert run.arrive(2, 1.0) == (2, "merge", 4.0)  # 3/4*5 + 1/4
    assert run.arrive(2, 0.0) == (0, "merge", 3.0)  # 3/4*4
    assert run.arrive(0, 7.0) == (3, "merge", 4.0)  # 3/4*3 + 7/4
    assert run.arrive(1, 8.0) == (3, "merge", 5.0)  # 3/4*4 + 8/4


def test_fedbuff(hand_run):
    # K = 2: x + 1/2 * (s_1 delta_1 + s_2 delta_2), each delta from the model downloaded.
    run = hand_run(FedBuff(concurrency=3, buffer_size=2, server_lr=1.0, discount=HALVING))
    assert run.arrive(0, 4.0) == (0, "hold", 0.0)  # delta 4, s 1; client 0 goes on at once, from v 0 again
    assert run.arrive(1, 8.0) == (0, "merge", 6.0)  # delta 8, s 1: 0 + (4 + 8)/2; v = 1
    assert run.arrive(2, 4.0) == (1, "hold", 6.0)  # from 0: delta 4, s 1/2
    assert run.arrive(0, 8.0) == (1, "merge", 9.0)  # from 0: delta 8, s 1/2: 6 + (2 + 4)/2; v = 2
    assert run.arrive(2, 7.0) == (1, "hold", 9.0)  # from 6: delta 1, s 1/2
    assert run.arrive(0, 9.0) == (0, "merge", 9.25)  # from 9: delta 0: 9 + (1/2 + 0)/2; v = 3
    assert (run.server.version, run.server.round, run.server.updates) == (3, 3, 6)


def test_cyclic_weight_transfer_hands_the_model_from_one_to_the_next(hand_run):
    run = hand_run(CyclicWeightTransfer())
    seen, before = [], 0.0
    for model in (5.0, 2.0, 7.0, 1.0, 4.0, 8.0):
        (dispatch,) = run.server.outstanding.values()  # one at a time
        assert run.start_of(dispatch.client) == before  # from the previous client's result
        assert run.arrive(dispatch.client, model) == (0, "merge", model)  # x = w_i
        seen.append(dispatch.client)
        before = model
    assert sorted(seen[:3]) == sorted(seen[3:]) == [0, 1, 2]
    assert run.server.round == 2


def test_cyclic_weight_transfer_passes_a_lost_ticket_over(hand_run):
    run = hand_run(CyclicWeightTransfer(round_length=2))
    (first,) = run.server.outstanding.values()
    assert run.lose(first.client) == ("hold", 0.0)
    (second,) = run.server.outstanding.values()
    assert second.client != first.client  # its turn in this cycle is over
    run.arrive(second.client, 4.0)
    assert run.server.round == 0
    (third,) = run.server.outstanding.values()
    run.arrive(third.client, 2.0)
    assert run.server.round == 1


def in_order_drawn(run):
    return [dispatch.client for dispatch in run.server.outstanding.values()]


def test_published_scripts_afl_halves_in_the_order_drawn_and_never_downloads(hand_run):
    work = Work(learning_rate=1.0, start="own")
    run = hand_run(PublishedScripts(mode="afl", cohort_size=3, work=work))
    first, second, third = in_order_drawn(run)
    assert run.arrive(third, 2.0, duration=1.0) == (0, "hold", 0.0)
    assert run.arrive(first, 8.0, duration=3.0) == (0, "hold", 0.0)
    # first, second, third in turn: (0 + 8)/2 = 4, (4 + 4)/2 = 4, (4 + 2)/2 = 3; three merges, one round.
    assert run.arrive(second, 4.0, duration=2.0) == (0, "merge merge merge", 3.0)
    assert (run.server.version, run.server.round) == (3, 1)
    assert {run.start_of(first), run.start_of(second), run.start_of(third)} == {8.0, 4.0, 2.0}  # their own, not 3
    # The spread was 3 - 1 = 2 s: the rate is 1/(1 + 0.01*2), decaying with the square root of the local epoch.
    (work,) = {dispatch.work for dispatch in run.server.outstanding.values()}
    assert (work.learning_rate, work.decay) == (1 / 1.02, 0.5)
    first, second, third = in_order_drawn(run)
    run.arrive(first, 5.0)
    run.arrive(second, 6.0)
    assert run.arrive(third, 7.0) == (0, "merge merge merge", 6.0)  # (3 + 5)/2 = 4, (4 + 6)/2 = 5, (5 + 7)/2 = 6


def test_published_scripts_sync_takes_the_plain_mean(hand_run):
    run = hand_run(PublishedScripts(mode="sync", cohort_size=2, work=Work(learning_rate=1.0)), num_examples=(9, 1))
    assert run.arrive(0, 4.0, duration=5.0) == (0, "hold", 0.0)
    assert run.arrive(1, 8.0) == (0, "merge", 6.0)  # (4 + 8)/2, whatever the samples
    assert [run.start_of(0), run.start_of(1)] == [4.0, 8.0]
    (work,) = {dispatch.work for dispatch in run.server.outstanding.values()}
    assert (work.learning_rate, work.decay, work.start) == (1.0, 0.0, "own")  # the sync scripts' rate is constant
    run.arrive(1, 1.0)
    assert run.arrive(0, 2.0) == (0, "merge", 1.5)
    run.arrive(1, 5.0)
    assert run.lose(0) == ("merge", 5.0)


@pytest.mark.parametrize("mode", ["afl", "sync"])
def test_published_scripts_take_another_schedule_if_given_one(hand_run, mode):
    run = hand_run(PublishedScripts(mode=mode, cohort_size=1, schedule=ConstantRate()))
    assert {dispatch.work.decay for dispatch in run.server.outstanding.values()} == {0.0}
