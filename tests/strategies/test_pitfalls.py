"""Where public implementations of these rules go wrong. Each test gives the wrong answer a chance to appear."""

import pytest

from asyncfed.strategies import AFL, FedAsync, FedBuff
from asyncfed.strategies.discounts import Hinge, NoDiscount, Polynomial
from asyncfed.strategies.samplers import UniformAll


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (FedBuff(concurrency=3, buffer_size=1, discount=NoDiscount()), 7.0),
        (AFL(concurrency=3, aggregate="delta_sum"), 7.0),
    ],
)
def test_a_delta_is_taken_against_the_downloaded_model_not_the_current_one(hand_run, strategy, expected):
    run = hand_run(strategy)
    run.arrive(0, 4.0)  # x = 4
    assert run.arrive(1, 3.0) == (1, "merge", expected)  # 4 + (3 - 0); against the current model it would be 3


def test_fedbuff_divides_by_the_buffer_once_and_not_by_the_clients(hand_run):
    run = hand_run(FedBuff(concurrency=3, buffer_size=2, server_lr=1.0))
    run.arrive(0, 4.0)
    run.arrive(1, 4.0)
    assert run.merges[-1].weights == (0.5, 0.5)  # not 1/3 (clients), 1/4 (K twice) or 1
    assert run.x == 4.0


def test_fedbuff_merges_deltas_and_keeps_the_whole_model(hand_run):
    run = hand_run(FedBuff(concurrency=3, buffer_size=1))
    run.arrive(0, 4.0)
    assert (run.merges[-1].of, run.merges[-1].keep) == ("delta", 1.0)


def test_a_weight_too_small_to_be_felt_is_still_a_weight_of_the_model(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="mixing", mixing=1e-17))
    run.arrive(0, 4.0)
    assert (run.merges[-1].of, run.merges[-1].keep) == ("model", 1.0)  # 1 - 1e-17 rounds to 1


def test_fedbuff_discounts_what_is_stale(hand_run):
    run = hand_run(FedBuff(concurrency=3, buffer_size=1, server_lr=2.0, discount=Polynomial(power=0.5)))
    for client in (0, 0, 0, 1):
        run.arrive(client, 1.0)
    assert [merge.weights for merge in run.merges] == [(2.0,), (2.0,), (2.0,), (1.0,)]  # 2/sqrt(1 + 3)


def test_fedbuff_divides_by_the_buffer_even_when_discounts_do_not_add_up_to_it(hand_run):
    run = hand_run(FedBuff(concurrency=3, buffer_size=2, discount=Polynomial(power=1.0)))
    for client in (0, 0, 1, 2):
        run.arrive(client, 1.0)
    assert run.merges[-1].weights == (0.25, 0.25)  # (1/K) s(1), not normalised back to 1/2


def test_a_discount_does_not_compound(hand_run):
    run = hand_run(FedAsync(concurrency=3, mixing=0.5, discount=Polynomial(power=1.0)))
    for client in (0, 1, 1, 2, 2):
        run.arrive(client, 1.0)
    # staleness 0, 1, 0, 3, 0: a fresh update mixes by one half every time
    assert [merge.weights[0] for merge in run.merges] == [0.5, 0.25, 0.5, 0.125, 0.5]


@pytest.mark.parametrize("discount", [NoDiscount(), Polynomial(power=2.0), Hinge(slope=10.0, grace=0)])
def test_a_fresh_update_is_not_discounted(hand_run, discount):
    run = hand_run(FedAsync(concurrency=3, mixing=0.5, discount=discount))
    assert run.arrive(0, 8.0) == (0, "merge", 4.0)


def test_the_hinge_has_its_one_and_subtracts_the_grace():
    hinge = Hinge(slope=2.0, grace=3)
    # 1/(2 (tau - 3) + 1); without the one it would be infinite at the knee's edge and 1/2 next to it
    assert [hinge.weight(tau) for tau in (0, 3, 4, 5, 10)] == [1.0, 1.0, 1 / 3, 1 / 5, 1 / 15]


def test_the_memory_of_latest_models_fills(hand_run):
    run = hand_run(AFL(concurrency=3, aggregate="latest"), start=1000.0)
    for client in (0, 1, 2):
        run.arrive(client, 3.0)
    assert run.x == pytest.approx(3.0, abs=1e-9)  # nothing is left of the start once all were heard from


def test_staleness_is_carried_by_the_ticket_not_guessed_from_the_merges(hand_run):
    # One client holds three tickets of one version; a second report of the same client is one merge staler, and a
    # ticket handed out later is fresh although the client's earlier ones are still out.
    run = hand_run(AFL(concurrency=3, aggregate="mixing", sampler=UniformAll()), num_examples=(1,))
    assert [dispatch.base_version for dispatch in run.server.outstanding.values()] == [0, 0, 0]
    assert run.report(1, 0.0)[0] == 0
    assert run.report(3, 0.0)[0] == 0  # handed out after that merge
    assert run.report(0, 0.0)[0] == 2
    assert run.report(2, 0.0)[0] == 3
    assert run.report(4, 0.0)[0] == 2
