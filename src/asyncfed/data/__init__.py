"""Data: tables, generators, splits over clients, and how heterogeneous the clients really are."""

from asyncfed.data.built_in import BreastCancer, Diabetes, Digits, Flights
from asyncfed.data.claimed_skew import ClaimedSkew, SkewAspect
from asyncfed.data.clients import Clients
from asyncfed.data.federated_summary import ClientSummary, Preparation, TableSchema, merge_summaries
from asyncfed.data.generators import Generator, PaperClassification, PaperRegression
from asyncfed.data.heterogeneity_measurement import measure_heterogeneity
from asyncfed.data.heterogeneity_report import HeterogeneityReport, SkewTest
from asyncfed.data.holdout import HeldOut, Holdout
from asyncfed.data.label_partition import partition_by_label
from asyncfed.data.preparation import DEFAULT_CLIENTS, DataRequest, PreparedData
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
    "Assignment",
    "BreastCancer",
    "ByColumn",
    "ClaimedSkew",
    "ClientSummary",
    "Clients",
    "ConceptShift",
    "CovariateShift",
    "Data",
    "DataRequest",
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
    "PaperClassification",
    "PaperRegression",
    "Preparation",
    "PreparedData",
    "Published",
    "QuantileDirichlet",
    "QuantitySkew",
    "RawTable",
    "SkewAspect",
    "SkewTest",
    "Split",
    "Table",
    "TableFile",
    "TableSchema",
    "measure_heterogeneity",
    "merge_summaries",
    "partition_by_label",
]
