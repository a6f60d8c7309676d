"""The command `dashboard`: runs as they happen, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asyncfed.cli.output import print_line
from asyncfed.core.errors import ConfigError


def dashboard(
    place: Annotated[Path, typer.Argument(help="A folder of runs, or one run's file.")] = Path("runs"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: 8050, or a free one if that is taken.", min=0, max=65535)] = 0,
    token: Annotated[
        str | None, typer.Option(help="What the address must hold, 12 characters or more.", show_default="a random one")
    ] = None,
) -> None:
    """Show runs in a browser while they happen.

    Simulated and live ones, those of other processes too; nothing is written to the folder. Whoever has the address
    that is printed, with its token, can look.
    """
    try:
        from asyncfed.dashboard.access import Access
        from asyncfed.dashboard.serve import address_of, listen, serve
        from asyncfed.dashboard.web_app import Dashboard
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The dashboard needs {error.name}, which is not installed: `pip install 'asyncfed[dashboard]'`."
        ) from error

    if not place.exists():
        raise ConfigError(f"There is no folder {place}. Name one that has runs in it, or is to have.")
    access = Access(host) if token is None else Access(host, token)
    listener = listen(host, port)
    shown = Dashboard(place, access)
    serve(shown, listener, lambda: print_line(f"dashboard: {address_of(listener, access.token)}"))
