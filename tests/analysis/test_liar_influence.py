"""The liars' share of updates is not their share of clients."""

import pytest

import asyncfed as af
from asyncfed.analysis.liar_influence import LiarInfluence, liar_influence
from asyncfed.attacks import Liars, SignFlip, ZeroUpdate
from asyncfed.core.types import Budget
from asyncfed.strategies import AFL, FedAsync

LIARS = Liars(attack=ZeroUpdate(), clients=(0,))


def test_nobody_lies(small):
    assert liar_influence(af.run(small())) is None
    assert liar_influence(af.run(small(attack=Liars(attack=SignFlip(), share=0.0)))) is None


def test_fast_liars_have_more_updates_than_their_share_of_clients(small):
    class Fast:
        """Client 0 takes 1 s, all others 10 s."""

        def timing(self, client, ticket, work, num_examples):
            return af.Timing(0.0, 1.0 if client == 0 else 10.0, 0.0, False)

        def watts(self, client):
            return 1.0

        def finish_compute(self, client, start, seconds):
            return start + seconds

        def lost_after(self, client, ticket, timing):
            return timing.compute

    experiment = small(attack=LIARS, strategy=FedAsync(concurrency=4), budget=Budget(updates=130))
    found = liar_influence(af.run(experiment, delays=Fast()))
    assert (found.liars, found.clients, found.updates) == (1, 4, 130)
    assert found.by_liars == pytest.approx(100, abs=2)  # of 13 updates in 10 s, 10 are the liar's
    assert found.share > 3 * 0.25
    assert found.weight == pytest.approx(found.share, abs=0.25)


def test_weights_and_dropped_updates_are_counted(small):
    bounded = AFL(concurrency=4, aggregate="mixing", max_staleness=0, when_stale="drop")
    run = af.run(small(attack=LIARS, strategy=bounded, budget=Budget(updates=20)))
    found = liar_influence(run)
    merged = run.participation()
    assert (found.updates, found.by_liars) == (merged.sum(), merged[0])
    assert found.dropped_liars + found.dropped_honest > 0
    assert (found.filtered_liars, found.filtered_honest) == (0, 0)


def test_a_sentence_says_what_was_filtered():
    said = LiarInfluence(1, 4, 100, 40, 0.5, 38, 3, 0, 0).sentence
    assert said.startswith("1 of 4 clients lies: 40 % of the merged updates, 50 % of the weight")
    assert "filtered: 38 of liars' 40, 3 of others' 60" in said
