"""How long work takes and who is there: distributions, device classes, traces, availability, dropout."""

from asyncfed.delays.availability import Availability
from asyncfed.delays.delay_function import BoundFunction, FunctionDelays
from asyncfed.delays.delay_model import BoundDelays, Delays
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
from asyncfed.delays.duration_trace import Trace, read_trace
from asyncfed.delays.named_delays import heavy_tailed, published_laptop, stragglers
from asyncfed.delays.recorded_delays import Job, RecordedDelays
from asyncfed.delays.timing import DelayModel, Timing, check_timing

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
