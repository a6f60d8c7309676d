"""Runs on Flower whose tasks bring more than the model, or whose results are no models: on a grid without a network."""

import numpy as np
import pytest
from flwr.app import RecordDict
from tests.live.tiny_parts import Corrected, Impatient, SendIf

import asyncfed as af
from asyncfed import uplinks
from asyncfed.core.types import Budget, Work
from asyncfed.flower.node_memory import load_memory, save_memory
from asyncfed.rules import Noised
from asyncfed.runs.progress import seal
from asyncfed.store.loss_reasons import MODEL_LOST
from asyncfed.strategies import ACE, FedAsync, FedBuff, PublishedScripts
from asyncfed.uplinks import QSGD, Clip, ErrorFeedback, LocalNoise, LowRank, TopK
from asyncfed.uplinks.client_memory import ClientMemory

BASE = {"epochs": 1, "batch_size": 4, "learning_rate": 0.01}
SPARSE = Work(**BASE, uplink=(ErrorFeedback(codec=TopK(fraction=0.2)),))
FACTORS = LowRank(rank=1, shapes=((5, 2), (1,)))
QUIET, MIRRORED = uplinks.SendIf(threshold=1.2, at_most=2), uplinks.EF21(codec=TopK(fraction=0.2))
STRATEGIES = {
    "error feedback": FedBuff(concurrency=3, buffer_size=2, work=SPARSE),
    "correction": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE), rule=Corrected()),
    "correction and uplink": FedBuff(concurrency=3, buffer_size=2, work=SPARSE, rule=Corrected()),
    "unknown size": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, uplink=(SendIf(),))),
    "send if": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, uplink=(QUIET,))),
    "ef21": ACE(concurrency=3, work=Work(**BASE, uplink=(MIRRORED,))),
    "downlink": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, downlink=TopK(fraction=0.3))),
    "downlink and ef21": ACE(concurrency=3, work=Work(**BASE, uplink=(MIRRORED,), downlink=QSGD())),
    "levels": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, uplink=(QSGD(),))),
    "low rank": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, uplink=(ErrorFeedback(codec=FACTORS),))),
    "shapes of the problem": FedBuff(concurrency=3, buffer_size=2, work=Work(**BASE, uplink=(LowRank(rank=1),))),
    "noise of the server": FedBuff(
        concurrency=3,
        buffer_size=2,
        work=Work(**BASE, uplink=(Clip(norm=0.5),)),
        rule=Noised(clip=0.5, multiplier=1.0, divisor=2),
    ),
    "noise of the clients": FedAsync(concurrency=3, work=Work(**BASE, uplink=(LocalNoise(clip=0.5, multiplier=0.1),))),
    "own start": PublishedScripts(cohort_size=3, work=Work(**BASE)),
    "timers and cancels": Impatient(seconds=3.0),
}


def began_anew(run):
    """Clients that said so: with their answer, or in place of it, if they had lost what they cannot train without."""
    anew = [row.client for row in run.events("report", "skipped") if row.memory == -1]
    return anew + [row.client for row in run.events("lost") if row.reason == MODEL_LOST]


def check_replay(run):
    seal(run.session, run.journal)
    verification = af.verify(run.path)
    assert verification.ok, verification.lines


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_it_replays_to_the_same_bits_after_a_dead_node_and_a_dead_server(federation, strategy):
    run = federation(strategy=strategy, budget=Budget(rounds=12), init="torch")
    chance = np.random.default_rng(0)
    for turn in range(60):
        run.step()
        busy = [node for node in run.grid.nodes if run.grid.inboxes[node]]
        if busy and not run.session.finished:
            run.grid.work(int(chance.choice(busy)))
        if turn == 12:
            run.grid.states.pop(run.node_of(1), None)  # its SuperNode was killed, and started again at once
        if turn == 18:
            run.crash()
    run.finish()
    if strategy.work.remembers:
        assert began_anew(run) == [1]
    check_replay(run)


def test_what_goes_over_the_wire_is_what_the_ledger_counts(federation):
    strategy = FedBuff(concurrency=1, buffer_size=1, work=SPARSE, rule=Corrected())
    run = federation(strategy=strategy, budget=Budget(rounds=6))
    run.finish()

    def count(messages, name):
        arrays = [array for m in messages if name in m.content for array in m.content[name].values()]
        return sum(len(array.data) for array in arrays)

    ledger = run.session._execution.ledger
    assert ledger.bytes_down == count(run.grid.sent, "parts") == 6 * 2 * 88
    assert ledger.bytes_up == count(run.grid.answers, "parts") == 6 * (2 + 3 * 8)


def test_a_nodes_memory_is_what_it_was():
    memory, state = ClientMemory(), RecordDict()
    assert load_memory(state).of_ticket == {}
    memory.of_ticket = {3: {"0/residual": np.arange(3.0), "own_model": np.zeros(2, np.float32)}, 5: {}}
    save_memory(state, memory)
    loaded = load_memory(state).of_ticket
    assert list(loaded) == [3, 5]
    assert loaded[5] == {}
    for name, array in memory.of_ticket[3].items():
        assert loaded[3][name].dtype == array.dtype
        assert loaded[3][name].tobytes() == array.tobytes()
    memory.of_ticket = {}
    save_memory(state, memory)
    assert load_memory(state).of_ticket == {}
