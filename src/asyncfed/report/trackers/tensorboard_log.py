"""A run for TensorBoard, written with tensorboardX, which needs no PyTorch."""

from __future__ import annotations

from pathlib import Path

from asyncfed.analysis.protocols import ReportedRun
from asyncfed.core.errors import ConfigError
from asyncfed.report.trackers.scalars import scalars_of, settings_of


def write_tensorboard(run: ReportedRun, folder: Path) -> None:
    """Write an event file into `folder`; `tensorboard --logdir` shows it. Its wall time is the run's own clock."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError as error:
        raise ConfigError('TensorBoard files need tensorboardX: pip install "asyncfed[tensorboard]".') from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be made ({error.strerror}). Name another folder.") from error
    with SummaryWriter(str(folder)) as writer:
        writer.add_text("settings", "\n".join(f"- {key} = {value}" for key, value in settings_of(run).items()), 0)
        for scalar in scalars_of(run):
            writer.add_scalar(scalar.name, scalar.value, scalar.step, walltime=scalar.elapsed)
