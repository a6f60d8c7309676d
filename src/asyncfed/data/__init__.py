"""Data: tables, generators, splits over clients, and how heterogeneous the clients really are."""

from asyncfed.data.built_in import BreastCancer, Diabetes, Digits, Flights
from asyncfed.data.claimed_skew import Asks, Respect
from asyncfed.data.clients import Clients
from asyncfed.data.federated_summary import ClientSummary, Preparation, Recipe, combine
from asyncfed.data.generators import Generator, PaperClassification, PaperRegression
from asyncfed.data.heterogeneity_report import heterogeneity
from asyncfed.data.heterogeneity_verdict import HeterogeneityReport, Lens
from asyncfed.data.holdout import HeldOut, Holdout
from asyncfed.data.label_partition import deal_labels
from asyncfed.data.preparation import DEFAULT_CLIENTS, Dealing, Dealt
from asyncfed.data.raw_table import RawTable
from asyncfed.data.sources import Data, TableFile
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

__all__ = [
    "DEFAULT_CLIENTS",
    "IID",
    "Asks",
    "Assignment",
    "BreastCancer",
    "ByColumn",
    "ClientSummary",
    "Clients",
    "ConceptShift",
    "CovariateShift",
    "Data",
    "Dealing",
    "Dealt",
    "Diabetes",
    "Digits",
    "Dtype",
    "Flights",
    "Generator",
    "HeldOut",
    "HeterogeneityReport",
    "Holdout",
    "InOrder",
    "LabelDirichlet",
    "Lens",
    "PaperClassification",
    "PaperRegression",
    "Preparation",
    "Published",
    "QuantileDirichlet",
    "QuantitySkew",
    "RawTable",
    "Recipe",
    "Respect",
    "Split",
    "Table",
    "TableFile",
    "combine",
    "deal_labels",
    "heterogeneity",
]
