"""How long work takes and who is there: distributions, device classes, traces, availability, dropout."""

from asyncfed.delays.availability import Availability
from asyncfed.delays.devices import CPU_WATTS, GPU_WATTS, Device
from asyncfed.delays.distributions import (
    Constant,
    Distribution,
    Exponential,
    LogNormal,
    Pareto,
    ShiftedExponential,
    Uniform,
)
from asyncfed.delays.function import BoundFunction, FunctionDelays
from asyncfed.delays.model import BoundDelays, Delays
from asyncfed.delays.ready_made import heavy_tailed, published_laptop, stragglers
from asyncfed.delays.recorded import Job, RecordedDelays
from asyncfed.delays.timing import DelayModel, Timing, check_timing
from asyncfed.delays.trace import Trace, read_trace

__all__ = [
    "CPU_WATTS",
    "GPU_WATTS",
    "Availability",
    "BoundDelays",
    "BoundFunction",
    "Constant",
    "DelayModel",
    "Delays",
    "Device",
    "Distribution",
    "Exponential",
    "FunctionDelays",
    "Job",
    "LogNormal",
    "Pareto",
    "RecordedDelays",
    "ShiftedExponential",
    "Timing",
    "Trace",
    "Uniform",
    "check_timing",
    "heavy_tailed",
    "published_laptop",
    "read_trace",
    "stragglers",
]
