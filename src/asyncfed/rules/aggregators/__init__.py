"""Aggregators: one vector in place of several, some of which may be lies."""

from asyncfed.rules.aggregators.average import Average
from asyncfed.rules.aggregators.centered_clipping import CenteredClipping
from asyncfed.rules.aggregators.ctma import Ctma
from asyncfed.rules.aggregators.geometric_median import GeometricMedian
from asyncfed.rules.aggregators.krum import Krum, MultiKrum
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator
from asyncfed.rules.aggregators.trimmed_mean import TrimmedMean

__all__ = [
    "Aggregate",
    "Aggregator",
    "Average",
    "CenteredClipping",
    "Ctma",
    "GeometricMedian",
    "Krum",
    "Median",
    "MultiKrum",
    "TrimmedMean",
]
