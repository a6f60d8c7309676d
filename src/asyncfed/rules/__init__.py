"""Server rules: how arrivals become the next model; and the vectors of a run."""

from asyncfed.rules.adagrad import Adagrad
from asyncfed.rules.adam import Adam
from asyncfed.rules.aggregators import (
    Aggregate,
    Aggregator,
    Average,
    CenteredClipping,
    Ctma,
    GeometricMedian,
    Krum,
    Median,
    MultiKrum,
    TrimmedMean,
)
from asyncfed.rules.amsgrad import Amsgrad
from asyncfed.rules.aso_fed import AsoFed
from asyncfed.rules.batch_table import BatchTable
from asyncfed.rules.bucket_aggregate import BucketAggregate
from asyncfed.rules.ca2fl import CA2FL
from asyncfed.rules.clipped import Clipped
from asyncfed.rules.compared import Compared
from asyncfed.rules.dc_asgd import DcAsgd
from asyncfed.rules.fadas import Fadas
from asyncfed.rules.feddyn import FedDyn
from asyncfed.rules.fednova import FedNova
from asyncfed.rules.fixed_point_sum import FixedPointSum
from asyncfed.rules.last_models import LastModels
from asyncfed.rules.latest_models import LatestModels
from asyncfed.rules.latest_momenta import LatestMomenta
from asyncfed.rules.lipschitz_coefficients import LipschitzCoefficients
from asyncfed.rules.mean import Mean
from asyncfed.rules.model_cache import ModelCache
from asyncfed.rules.momentum import Momentum
from asyncfed.rules.moved_since import MovedSince
from asyncfed.rules.noised import Noised
from asyncfed.rules.norm_bounded import NormBounded
from asyncfed.rules.optimised import Optimised
from asyncfed.rules.optimiser import Optimiser
from asyncfed.rules.protocol import Arrival, Rule, ServerRule
from asyncfed.rules.qfair import QFair
from asyncfed.rules.robust import Robust
from asyncfed.rules.rule_run import RuleRun
from asyncfed.rules.scaffold import Scaffold
from asyncfed.rules.secure_aggregation import SecureAggregation
from asyncfed.rules.table_mean import TableMean
from asyncfed.rules.tier_models import TierModels
from asyncfed.rules.tree_noised import TreeNoised
from asyncfed.rules.trusted_direction import TrustedDirection
from asyncfed.rules.trusted_distance import TrustedDistance
from asyncfed.rules.vectors import COMBINERS, Vectors
from asyncfed.rules.yogi import Yogi

__all__ = [
    "CA2FL",
    "COMBINERS",
    "Adagrad",
    "Adam",
    "Aggregate",
    "Aggregator",
    "Amsgrad",
    "Arrival",
    "AsoFed",
    "Average",
    "BatchTable",
    "BucketAggregate",
    "CenteredClipping",
    "Clipped",
    "Compared",
    "Ctma",
    "DcAsgd",
    "Fadas",
    "FedDyn",
    "FedNova",
    "FixedPointSum",
    "GeometricMedian",
    "Krum",
    "LastModels",
    "LatestModels",
    "LatestMomenta",
    "LipschitzCoefficients",
    "Mean",
    "Median",
    "ModelCache",
    "Momentum",
    "MovedSince",
    "MultiKrum",
    "Noised",
    "NormBounded",
    "Optimised",
    "Optimiser",
    "QFair",
    "Robust",
    "Rule",
    "RuleRun",
    "Scaffold",
    "SecureAggregation",
    "ServerRule",
    "TableMean",
    "TierModels",
    "TreeNoised",
    "TrimmedMean",
    "TrustedDirection",
    "TrustedDistance",
    "Vectors",
    "Yogi",
]
