"""The commands of `asyncfed explain`: numbers of the theory for numbers of one's own, without an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from asyncfed.cli.output import print_line

explain = typer.Typer(
    help="What theory says for numbers of your own.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@explain.callback()
def explain_group() -> None:
    """What theory says for numbers of your own."""


@explain.command()
def speedup(
    times: Annotated[
        list[str], typer.Option(metavar="COUNTxSECONDS", help="So many clients that take so long; repeatable.")
    ],
    concurrency: Annotated[int, typer.Option(help="Clients at work at once.")] = 10,
) -> None:
    """Say what a server that does not wait for the slowest saves.

    For constant times, and clients drawn uniformly with replacement.
    """
    from asyncfed.analysis.speed_up import groups_of_clients, speed_up_of_groups

    groups = groups_of_clients(times)
    saved = speed_up_of_groups(groups, concurrency)
    clients = sum(count for count, _ in groups)
    print_line(f"{clients:,} clients, {concurrency} at work at once; seconds per {concurrency} changes:")
    print_line(f"nobody waits              {saved.asynchronous:.4g}   the mean time of a client")
    print_line(f"rounds wait for all       {saved.synchronous:.4g}   the mean of the longest of {concurrency} draws")
    print_line(f"speed-up                  {saved.factor:.3g}x")
