"""The commands of `asyncfed flower`: new, up, certificates and key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from asyncfed.cli.output import complaints, console, print_line

flower = typer.Typer(help="Run an experiment over the network, on Flower.", no_args_is_help=True, rich_markup_mode=None)
Nodes = Annotated[int, typer.Option(help="How many nodes there are, one client each.")]


@flower.command("new")
def new(
    folder: Annotated[Path, typer.Argument(help="The app's folder, new or empty.")],
    nodes: Nodes = 3,
    torch: Annotated[bool, typer.Option("--torch", help="Around a PyTorch module.")] = False,
) -> None:
    """Write a small Flower app to begin with."""
    from asyncfed.flower.new_app import write_app

    for file in write_app(folder, nodes, torch):
        print_line(f"wrote {file}")


@flower.command("up")
def up(
    nodes: Nodes = 3,
    folder: Annotated[Path, typer.Option(help="Where certificates, keys, logs and state go.")] = Path("federation"),
    port: Annotated[int | None, typer.Option(help="The SuperLink's port (default: a free one).")] = None,
    restart_proof: Annotated[
        bool, typer.Option("--restart-proof", help="Let runs outlive a SuperLink that is restarted.")
    ] = False,
) -> None:
    """Start a SuperLink and SuperNodes on this machine, with TLS and node keys, until Ctrl-C."""
    from asyncfed.flower import federation

    starting = console.status("starting")
    starting.start()
    try:
        with federation(folder, nodes, restart_proof=restart_proof, port=port) as here:
            starting.stop()
            if here.ended_before:
                left = ", ".join(here.ended_before)
                complaints.print(f"ended what a killed predecessor had left running: {left}", soft_wrap=True)
            console.print(f"SuperLink at {here.address}, {nodes} nodes, files in {here.folder}", soft_wrap=True)
            console.print("to run an app, in another terminal:", style="dim")
            console.print(f"  FLWR_HOME={here.home} flwr run APP asyncfed --stream", highlight=False, soft_wrap=True)
            here.wait(lambda text: complaints.print(text, highlight=False, soft_wrap=True))
    except KeyboardInterrupt:
        complaints.print("stopped")
    finally:
        starting.stop()


@flower.command("certificates")
def make_certificates(
    hosts: Annotated[list[str], typer.Argument(help="Names and addresses that nodes reach the SuperLink by.")],
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path("certificates"),
) -> None:
    """Make a certificate authority of your own and the SuperLink's certificate."""
    from asyncfed.flower import certificates

    certificates(folder, tuple(hosts))
    console.print(
        f"wrote {folder}/server.crt for {', '.join(hosts)}; nodes need {folder}/ca.crt and nothing else of it"
    )


@flower.command("key")
def key(
    file: Annotated[Path, typer.Argument(help="The private key's file; .pub is appended for the other.")],
) -> None:
    """Make a node's key: the private one stays on the node, the public one is registered with the SuperLink."""
    from asyncfed.flower import node_key

    console.print(f"wrote {file}, which never leaves this machine, and {node_key(file)}", soft_wrap=True)
