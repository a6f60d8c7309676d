"""What is compared: AsyncFed, the rivals, and the limit."""

from __future__ import annotations

from typing import NamedTuple


class System(NamedTuple):
    """One line of the table.

    `module` is run in `environment`, a folder of `.venv-rivals` in which `requirement` is installed, or with this very
    interpreter where there is none.
    """

    name: str
    module: str
    environment: str = ""
    requirement: str = ""
    imports_torchvision: bool = False
    arguments: tuple[str, ...] = ()
    asynchronous: bool = False
    virtual_time: bool = False
    is_ours: bool = False
    is_limit: bool = False


SYSTEMS = (
    System(
        "bare loop + vectorised C (the limit)",
        "benchmarks.rivals.limit_workloads",
        asynchronous=True,
        virtual_time=True,
        is_limit=True,
    ),
    System(
        "AsyncFed, AFL",
        "benchmarks.rivals.asyncfed_workloads",
        arguments=("--strategy", "AFL"),
        asynchronous=True,
        virtual_time=True,
        is_ours=True,
    ),
    System(
        "AsyncFed, FedAvg",
        "benchmarks.rivals.asyncfed_workloads",
        arguments=("--strategy", "FedAvg"),
        virtual_time=True,
        is_ours=True,
    ),
    System("pfl-research, 2 processes", "benchmarks.rivals.pfl_workloads", "pfl", "pfl==0.6.0"),
    System("FedLab", "benchmarks.rivals.fedlab_workloads", "fedlab", "fedlab==1.3.0", imports_torchvision=True),
    System("fluke", "benchmarks.rivals.fluke_workloads", "fluke", "fluke-fl==0.8.1", imports_torchvision=True),
    System(
        "FLSim, asynchronous",
        "benchmarks.rivals.flsim_workloads",
        "flsim",
        "flsim==0.1.0",
        imports_torchvision=True,
        asynchronous=True,
        virtual_time=True,
    ),
    System("Flower simulation (Ray)", "benchmarks.rivals.flower_workloads", "flower", "flwr[simulation]==1.41.0"),
    System(
        "APPFL vsim, FedAsync",
        "benchmarks.rivals.appfl_workloads",
        "appfl",
        "appfl==1.12.0",
        imports_torchvision=True,
        asynchronous=True,
        virtual_time=True,
    ),
    System("NVFlare simulator", "benchmarks.rivals.nvflare_workloads", "nvflare", "nvflare==2.9.0"),
)
