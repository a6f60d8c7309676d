"""A verdict on each claim of the paper's simulations, in the paper's order, from a statistic over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from asyncfed.core.record import Record
from asyncfed.presets import Reading
from asyncfed.reproduce.claims import CLAIMS, Claim
from asyncfed.reproduce.curve_statistics import Verdict
from asyncfed.reproduce.figure_spec import FigureSpec
from asyncfed.reproduce.figures import Runs
from asyncfed.reproduce.run_lookup import Study

DIGITS = 4


class Finding(Record):
    """A claim, tested in one reading. `number` and its 95 % interval are in `unit`; None where there is none."""

    id: str
    claim: str
    statistic: str
    number: float | None
    low: float | None
    high: float | None
    unit: str
    verdict: Verdict
    reason: str
    figure: str
    reading: Reading


def assess_claims(figures: Mapping[int, tuple[FigureSpec, Runs]]) -> list[Finding]:
    """The findings on all claims that these figures, by number, have the runs for."""
    study = Study(figures)
    shown = [claim for claim in CLAIMS if claim.figure in figures]
    return [_finding(claim, study, reading) for claim in shown for reading in claim.readings]


def _finding(claim: Claim, study: Study, reading: Reading) -> Finding:
    found = claim.assess(study, reading)
    return Finding(
        id=claim.id,
        claim=claim.claim,
        statistic=claim.statistic,
        number=_rounded(found.interval.mean),
        low=_rounded(found.interval.low),
        high=_rounded(found.interval.high),
        unit=claim.unit,
        verdict=found.verdict,
        reason=found.reason,
        figure=study.name(claim.figure),
        reading=reading,
    )


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if isfinite(value) else None
