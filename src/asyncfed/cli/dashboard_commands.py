"""The command `dashboard`: runs as they happen, in a browser."""

from __future__ import annotations

import ipaddress
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asyncfed.cli.output import print_line
from asyncfed.core.errors import ConfigError

if TYPE_CHECKING:
    from asyncfed.dashboard.access import Access
    from asyncfed.dashboard.run_folder import RunFolder


def dashboard(
    place: Annotated[Path, typer.Argument(help="A folder of runs, or one run's file.")] = Path("runs"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: 8050, or a free one if it is taken.", min=0, max=65535)] = 0,
    token: Annotated[
        str | None,
        typer.Option(help="What an address must hold, 12 characters or more.", show_default="a random one"),
    ] = None,
    alerts: Annotated[
        Path | None,
        typer.Option(help="Rules of alerts, a TOML file; see docs/dashboard.md.", show_default="the usual ones"),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(help="An address to which alerts are posted as JSON.", show_default="none")
    ] = None,
    site_link: Annotated[
        tuple[str, int] | None,
        typer.Option(
            help="Also print a link with which the site that is this client of this run sees itself alone.",
            metavar="RUN CLIENT",
            show_default="none",
        ),
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Write the present state to this HTML file, and end.", show_default="none")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Show runs in a browser while they happen.

    Simulated and live ones, also those of other processes. Nothing is written to the folder. Whoever has the address
    that is printed, with its token, can look.
    """
    try:
        from asyncfed.dashboard.access import Access
        from asyncfed.dashboard.alert_rules import read_rules
        from asyncfed.dashboard.run_folder import RunFolder
        from asyncfed.dashboard.serve import address_of, listen, serve
        from asyncfed.dashboard.snapshot import make_snapshot
        from asyncfed.dashboard.web_app import ASSETS, Dashboard
        from asyncfed.dashboard.webhook import Webhook
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The dashboard needs {error.name}, which is not installed: `pip install 'asyncfed[dashboard]'`."
        ) from error

    if not place.exists():
        raise ConfigError(f"There is no folder {place}. Name one that has runs in it, or is to have.")
    if snapshot is not None:
        snapshot.write_text(make_snapshot(place, ASSETS, time.time()))
        print_line(f"wrote {snapshot}")
        return
    access = Access(host) if token is None else Access(host, token)
    shown = Dashboard(place, access, read_rules(alerts), None if webhook is None else Webhook(webhook).send)
    link = None if site_link is None else _site_token(access, RunFolder(place), *site_link)
    listener = listen(host, port)
    address = address_of(listener, access.token)

    def say_where() -> None:
        print_line(f"dashboard: {address}")
        if link is not None:
            print_line(f"for client {site_link[1] if site_link else ''} alone: {address_of(listener, link)}")
        if not _is_loopback(host):
            print_line(
                f"warning: {host} can be reached from other machines, without encryption. The token is all that "
                "protects the runs."
            )
        if browser and _is_loopback(host):
            webbrowser.open(address)

    serve(shown, listener, say_where)


def _site_token(access: Access, folder: RunFolder, run: str, client: int) -> str:
    """The token for one client of a run, which is named by its file below the folder, or as in addresses."""
    from asyncfed.dashboard.run_folder import NoSuchRunError, run_id

    for name in (run, run_id(run), run_id(Path(run).name)):
        try:
            folder.find(name)
        except NoSuchRunError:
            continue
        return access.site_token(name, client)
    raise ConfigError(f"There is no run {run} in {folder.path}; name its file below that folder.")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
