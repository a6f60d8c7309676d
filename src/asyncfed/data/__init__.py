"""Data: tables, generators, splits over clients, and how heterogeneous the clients really are."""

from asyncfed.data.built_in import BreastCancer, Diabetes, DigitImages, Digits, Flights
from asyncfed.data.claimed_skew import ClaimedSkew, SkewAspect
from asyncfed.data.clients import Clients
from asyncfed.data.data_source import DEFAULT_CLIENTS, DataRequest, DataSource, PreparedData
from asyncfed.data.federated_summary import (
    ClientSummary,
    Preparation,
    TableSchema,
    merge_summaries,
    prepare_features,
)
from asyncfed.data.generators import PaperClassification, PaperRegression
from asyncfed.data.heterogeneity_measurement import measure_heterogeneity
from asyncfed.data.heterogeneity_report import HeterogeneityReport, SkewTest
from asyncfed.data.holdout import HeldOut, Holdout
from asyncfed.data.label_partition import partition_by_label
from asyncfed.data.population import MakesRowsLate, Population
from asyncfed.data.preparation import ColumnRoles, prepare_raw_table, prepare_table
from asyncfed.data.raw_table import Column, RawTable
from asyncfed.data.reading.progress import ReadingWatcher, watch_reading
from asyncfed.data.sparse_text import SparseText
from asyncfed.data.split_protocol import Assignment, Split
from asyncfed.data.splits import (
    IID,
    ByColumn,
    ConceptShift,
    CovariateShift,
    InOrder,
    LabelDirichlet,
    Published,
    QuantileDirichlet,
    QuantitySkew,
)
from asyncfed.data.table import Dtype, Table
from asyncfed.data.table_file import TableFile, column_names
from asyncfed.data.target_kind import TargetKind, kind_of_target

__all__ = [
    "DEFAULT_CLIENTS",
    "IID",
    "Assignment",
    "BreastCancer",
    "ByColumn",
    "ClaimedSkew",
    "ClientSummary",
    "Clients",
    "Column",
    "ColumnRoles",
    "ConceptShift",
    "CovariateShift",
    "DataRequest",
    "DataSource",
    "Diabetes",
    "DigitImages",
    "Digits",
    "Dtype",
    "Flights",
    "HeldOut",
    "HeterogeneityReport",
    "Holdout",
    "InOrder",
    "LabelDirichlet",
    "MakesRowsLate",
    "PaperClassification",
    "PaperRegression",
    "Population",
    "Preparation",
    "PreparedData",
    "Published",
    "QuantileDirichlet",
    "QuantitySkew",
    "RawTable",
    "ReadingWatcher",
    "SkewAspect",
    "SkewTest",
    "SparseText",
    "Split",
    "Table",
    "TableFile",
    "TableSchema",
    "TargetKind",
    "column_names",
    "kind_of_target",
    "measure_heterogeneity",
    "merge_summaries",
    "partition_by_label",
    "prepare_features",
    "prepare_raw_table",
    "prepare_table",
    "watch_reading",
]
