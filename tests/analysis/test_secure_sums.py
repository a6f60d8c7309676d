"""Counts of lost groups and of sums that wrapped around, and what is said about them."""

from __future__ import annotations

from typing import Any

import asyncfed as af
from asyncfed.analysis.secure_sums import SecureSums, count_secure_sums, secure_sum_lines
from asyncfed.rules import SecureAggregation
from asyncfed.strategies import FedBuff


def run(**how: Any) -> tuple[SecureSums, list[str], Any]:
    settings = SecureAggregation(**how)
    experiment = af.Experiment(
        num_clients=6,
        data=af.data.PaperRegression(num_samples=120),
        strategy=FedBuff(concurrency=4, buffer_size=4, work=af.Work(epochs=3, learning_rate=0.01)),
        budget=af.Budget(rounds=20),
        secure_aggregation=settings,
    )
    finished = af.run(experiment)
    sums = count_secure_sums(finished.journal.event_rows())
    return sums, secure_sum_lines(sums, settings), finished.evaluations["objective"][-1]


def test_too_few_bits_wrap_around_and_the_message_says_so() -> None:
    enough, lines, objective = run(bits=40, limit=50.0)
    assert (enough.merges, enough.wrapped, enough.saturated, len(lines)) == (20, 0, 0, 1)
    too_few, lines, wrong = run(bits=8, fraction_bits=12, limit=50.0)
    assert too_few.wrapped > 0
    assert "8 bits are too few for 12 fraction bits" in lines[1]
    assert wrong > 2 * objective


def test_a_tight_limit_and_drop_outs_are_counted() -> None:
    sums, lines, _ = run(bits=40, limit=0.01, dropout=0.3, threshold=0.7)
    assert sums.saturated > 0
    assert sums.lost > 0
    assert sums.dropped_out >= 2 * sums.lost  # 3 of 4 are enough
    assert "cut off at secure_aggregation.limit, 0.01" in lines[1]
