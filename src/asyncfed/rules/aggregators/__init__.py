"""Aggregators: one vector in place of several, some of which may be lies."""

from asyncfed.rules.aggregators.average import Average
from asyncfed.rules.aggregators.median import Median
from asyncfed.rules.aggregators.protocol import Aggregate, Aggregator
from asyncfed.rules.aggregators.trimmed_mean import TrimmedMean

__all__ = ["Aggregate", "Aggregator", "Average", "Median", "TrimmedMean"]
