"""What the study is to show, and whether its rows show it: each claim with its number, interval and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from asyncfed.analysis.statistics import Interval
from asyncfed.communication.problems import PROBLEMS
from asyncfed.communication.summary import Measure, Row
from asyncfed.core.record import Record

STRATEGY = "fedbuff"
SLOW_LINK = "1_mbit"

TARGET = "times less than sending everything, to the same target"
SAME_RATE = "times fewer than sending everything, to the same target, both at the same small learning rate"

HOLDS, FAILS = "holds", "does not hold"


class Claim(Record):
    """A claim about one problem, with FedBuff on the slow link.

    Args:
        id: its name.
        problem: what is learnt.
        words: the claim.
        statistic: what the number is.
        interval: the number with its 95 % interval; None if not all runs reached the target.
        verdict: "holds" or "does not hold"; the low end of the interval decides, the mean where there is one seed.
        reason: why.
    """

    id: str
    problem: str
    words: str
    statistic: str
    interval: Interval | None
    verdict: str
    reason: str


SAVINGS: dict[str, tuple[str, Measure, float, str]] = {
    "bytes": ("top_k_ef", "bytes_up", 20.0, "top-k 1 % with error feedback needs 20 times fewer bytes up"),
    "time": (
        "top_k_ef",
        "seconds",
        2.0,
        "on a 1 Mbit/s link top-k 1 % with error feedback takes half the time or less",
    ),
}
"""Codec, measure, the least ratio to sending everything, and the claim in words."""

STALLING = "top_k"

EVENT_TRIGGERED, LEAST_UPLOADS = "send_if", 3.0


def judge(rows: Sequence[Row]) -> list[Claim]:
    """The claims about every problem for which the rows have what is needed."""
    own = {
        (row.cell.problem, row.cell.codec): row
        for row in rows
        if row.cell.strategy == STRATEGY and row.cell.link == SLOW_LINK
    }
    found = []
    for problem in dict.fromkeys(row.cell.problem for row in rows):
        for name, (codec, measure, least, words) in SAVINGS.items():
            if (problem, codec) in own:
                row = own[problem, codec]
                found.append(_saving(f"{problem}-{name}", row, row.savings[measure].ratio, least, words, TARGET))
        if (problem, EVENT_TRIGGERED) in own:
            row, words = own[problem, EVENT_TRIGGERED], "event-triggered sending needs 3 times fewer uploads"
            ratio = row.uploads_at_same_rate
            found.append(_saving(f"{problem}-uploads", row, ratio, LEAST_UPLOADS, words, SAME_RATE))
        if (problem, STALLING) in own:
            found.append(_stall(f"{problem}-stall", own[problem, STALLING]))
    return found


def _saving(name: str, row: Row, ratio: Interval | None, least: float, words: str, statistic: str) -> Claim:
    if ratio is None:
        reason = f"{row.reached} of {len(row.runs)} runs reached the target"
        return Claim(name, row.cell.problem, words, statistic, None, FAILS, reason)
    low = ratio.mean if isnan(ratio.low) else ratio.low
    reason = f"the low end must be at least {least:g}, over {ratio.n} seeds"
    return Claim(name, row.cell.problem, words, statistic, ratio, HOLDS if low >= least else FAILS, reason)


def _stall(name: str, row: Row) -> Claim:
    remaining, left = PROBLEMS[row.cell.problem].remaining, row.least_left
    low = left.mean if isnan(left.low) else left.low
    holds = row.reached == 0 and low > remaining
    return Claim(
        name,
        row.cell.problem,
        "top-k 1 % without error feedback stalls above the target",
        "the least share of the way that was left",
        left,
        HOLDS if holds else FAILS,
        f"the low end must be above the target's {remaining:g}, and no run may reach it; {row.reached} of "
        f"{len(row.runs)} did",
    )
