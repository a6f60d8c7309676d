"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

RunFile: TypeAlias = Annotated[Path, typer.Argument(help="A run's file, as `run --out` wrote it.")]
Plot: TypeAlias = Annotated[Path | None, typer.Option(help="Also draw the run into this PNG or PDF file.")]
Timeline: TypeAlias = Annotated[
    Path | None, typer.Option(help="Also draw each client's tickets over time into this PNG or PDF file.")
]
OutFolder: TypeAlias = Annotated[Path, typer.Option("--out-dir", help="Folder for what is written.", file_okay=False)]
Threads: TypeAlias = Annotated[int | None, typer.Option(help="Threads; changes the speed and nothing else.")]
Workers: TypeAlias = Annotated[int | None, typer.Option(help="Processes; changes the speed and nothing else.")]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help='Compute on a Ray cluster: "auto", or HOST:PORT of its head node; changes the speed and nothing else. See '
        "docs/cluster.md.",
        metavar="ADDRESS",
        show_default="this machine",
    ),
]
Actors: TypeAlias = Annotated[
    int | None,
    typer.Option("--workers", help="With --cluster: how many actors train.", show_default="one per CPU of the cluster"),
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace the run's file if it exists.")]
Personalize: TypeAlias = Annotated[
    bool,
    typer.Option("--personalize", help="Also fine-tune the model for each client on its own rows; say who gains."),
]
CheckpointSeconds: TypeAlias = Annotated[float, typer.Option(help="Wall-clock time between checkpoints.")]
