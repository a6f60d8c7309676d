"""Ready-made experiments, and strategies, delays, data, problems and compressions by name."""

from asyncfed.presets.compressions import COMPRESSIONS, compression_named
from asyncfed.presets.named_delays import DELAYS, delays_named
from asyncfed.presets.named_experiments import PRESETS, preset
from asyncfed.presets.named_strategies import STRATEGIES, Rate, strategy_like, strategy_named
from asyncfed.presets.paper_experiments import Reading, regression, svm
from asyncfed.presets.populations import population
from asyncfed.presets.robust_defaults import make_robust
from asyncfed.presets.table_defaults import default_delays as table_delays
from asyncfed.presets.table_experiments import BUILT_IN, PROBLEMS, PreparedTable, prepare_table, table, table_name
from asyncfed.presets.unequal_clients import unequal

__all__ = [
    "BUILT_IN",
    "COMPRESSIONS",
    "DELAYS",
    "PRESETS",
    "PROBLEMS",
    "STRATEGIES",
    "PreparedTable",
    "Rate",
    "Reading",
    "compression_named",
    "delays_named",
    "make_robust",
    "population",
    "prepare_table",
    "preset",
    "regression",
    "strategy_like",
    "strategy_named",
    "svm",
    "table",
    "table_delays",
    "table_name",
    "unequal",
]
