"""Simulated secure sums in live runs: counted, replayed, and continued after crashes."""

from __future__ import annotations

from typing import Any

from asyncfed.core.types import Budget, Work
from asyncfed.live.session import CheckpointPolicy
from asyncfed.rules import SecureAggregation
from asyncfed.strategies import FedBuff

WORK = Work(epochs=1, batch_size=4, learning_rate=0.01)


def test_a_live_run_sums_in_fixed_point_and_replays_after_crashes(live_run: Any) -> None:
    live = live_run(
        strategy=FedBuff(concurrency=3, buffer_size=2, work=WORK),
        budget=Budget(rounds=6),
        secure_aggregation=SecureAggregation(bits=12, rounding="stochastic", dropout=0.1, threshold=0.5),
        checkpoints=CheckpointPolicy(seconds=0.0),
    )
    live.commit()
    while not live.session.finished:
        live.answer(next(iter(live.held)))
        live.commit()
        live.crash()
        live.commit()
    live.check_whole()
    ledger, size = live.session._execution.ledger, live.session._execution.vectors.params.size
    assert ledger.bytes_up % (-(-size * 12 // 8) + 2 * 96) == 0
