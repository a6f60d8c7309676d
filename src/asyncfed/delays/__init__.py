"""How long work takes and which clients are present: distributions, device classes, traces, availability, dropout."""

from asyncfed.delays.availability import Availability
from asyncfed.delays.cluster_variation import ClusterVariation
from asyncfed.delays.delay_function import BoundFunction, FunctionDelays
from asyncfed.delays.delay_model import BoundDelays, Delays
from asyncfed.delays.delay_profiles import cluster, cluster_job, hospital, phones
from asyncfed.delays.delay_protocols import (
    DelayDescription,
    DelayModel,
    ExpectedDurations,
    LimitsBandwidth,
    PredictableDelays,
    Timing,
    check_timing,
)
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
from asyncfed.delays.fedscale_traces import FedScaleAvailability, FedScaleDelays
from asyncfed.delays.flash_traces import FlashAvailability
from asyncfed.delays.mean_durations import estimate_durations, expected_durations
from asyncfed.delays.named_delays import heavy_tailed, published_laptop, stragglers
from asyncfed.delays.nights import Nights
from asyncfed.delays.outages import Outages
from asyncfed.delays.per_work import BoundPerWork, PerWork
from asyncfed.delays.presence import PresenceDescription, PresenceModel
from asyncfed.delays.recorded_delays import Job, RecordedDelays
from asyncfed.delays.recorded_durations import RecordedDurations
from asyncfed.delays.variation import Sites, TicketFactor, Variation
from asyncfed.delays.work_amount import completed_fraction, count_passes

__all__ = [
    "CPU_WATTS",
    "GPU_WATTS",
    "Availability",
    "BoundDelays",
    "BoundFunction",
    "BoundPerWork",
    "ClusterVariation",
    "Constant",
    "DelayDescription",
    "DelayModel",
    "Delays",
    "Device",
    "Distribution",
    "ExpectedDurations",
    "Exponential",
    "FedScaleAvailability",
    "FedScaleDelays",
    "FlashAvailability",
    "FunctionDelays",
    "Job",
    "LimitsBandwidth",
    "LogNormal",
    "Nights",
    "Outages",
    "Pareto",
    "PerWork",
    "PredictableDelays",
    "PresenceDescription",
    "PresenceModel",
    "RecordedDelays",
    "RecordedDurations",
    "ShiftedExponential",
    "Sites",
    "TicketFactor",
    "Timing",
    "Trace",
    "Uniform",
    "Variation",
    "check_timing",
    "cluster",
    "cluster_job",
    "completed_fraction",
    "count_passes",
    "estimate_durations",
    "expected_durations",
    "heavy_tailed",
    "hospital",
    "phones",
    "published_laptop",
    "read_trace",
    "stragglers",
]
