"""Data: tables, generators, splits over clients, and how heterogeneous the clients really are."""

from asyncfed.data.asks import Asks, Respect
from asyncfed.data.clients import Clients
from asyncfed.data.generators import Generator, PaperClassification, PaperRegression
from asyncfed.data.heterogeneity import heterogeneity
from asyncfed.data.labels import deal_labels
from asyncfed.data.splits import (
    IID,
    Assignment,
    ByColumn,
    ConceptShift,
    CovariateShift,
    InOrder,
    LabelDirichlet,
    Published,
    QuantileDirichlet,
    QuantitySkew,
    Split,
)
from asyncfed.data.table import Dtype, Table
from asyncfed.data.verdict import HeterogeneityReport, Lens

__all__ = [
    "IID",
    "Asks",
    "Assignment",
    "ByColumn",
    "Clients",
    "ConceptShift",
    "CovariateShift",
    "Dtype",
    "Generator",
    "HeterogeneityReport",
    "InOrder",
    "LabelDirichlet",
    "Lens",
    "PaperClassification",
    "PaperRegression",
    "Published",
    "QuantileDirichlet",
    "QuantitySkew",
    "Respect",
    "Split",
    "Table",
    "deal_labels",
    "heterogeneity",
]
