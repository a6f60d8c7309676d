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


@explain.command()
def clock(
    times: Annotated[
        list[str],
        typer.Option(metavar="COUNTxSECONDS", help="So many clients that take so long for a gradient; repeatable."),
    ],
    smoothness: Annotated[float, typer.Option(help="L: how fast the gradient of the objective can change.")],
    variance: Annotated[float, typer.Option(help="sigma^2: of a stochastic gradient.")],
    target: Annotated[float, typer.Option(help="What is to be reached: a squared gradient, or an objective gap.")],
    start_gap: Annotated[
        float | None, typer.Option(help="F(x_0) - F*: for a problem that need not be convex.", show_default="not known")
    ] = None,
    start_distance: Annotated[
        float | None, typer.Option(help="|x_0 - x*|: for a convex problem.", show_default="not known")
    ] = None,
    strong_convexity: Annotated[
        float | None, typer.Option(help="mu: for a strongly convex problem.", show_default="not known")
    ] = None,
) -> None:
    """Say how many seconds no method can beat on all problems with these numbers.

    Up to constants and logarithms; a line for each sort of problem whose numbers are given.
    """
    from asyncfed.analysis.best_clock_table import best_clock_rows
    from asyncfed.analysis.speed_up import groups_of_clients

    groups = groups_of_clients(times)
    rows = best_clock_rows(groups, smoothness, variance, target, start_gap, start_distance, strong_convexity)
    clients = sum(count for count, _ in groups)
    print_line(
        f"{clients:,} clients; seconds that no method beats on all problems with these numbers, up to constants and "
        "logarithms:"
    )
    print_line(f"{'':20}{'same data':12}data that differ")
    for row in rows:
        print_line(f"{row.problem:20}{f'{row.same_data:.4g}':12}{row.different_data:.4g}")
    for row in rows:
        print_line(f"{row.problem}: until {row.reached}")


@explain.command()
def sampling(
    times: Annotated[
        list[str],
        typer.Option(metavar="COUNTxSECONDS", help="So many clients that take so long on average; repeatable."),
    ],
    concurrency: Annotated[int, typer.Option(help="Tickets out at once; a busy client queues them.")] = 10,
    noise_ratio: Annotated[
        float, typer.Option(help="A client's squared stochastic gradient over the squared gradient to be reached.")
    ] = 100.0,
) -> None:
    """Say how often Generalized AsyncSGD should draw fast and slow clients.

    For exponential times with these means and the bound of asyncfed.theory.optimal_sampling. Updates and time to the
    same accuracy are in multiples of those with equal chances.
    """
    from asyncfed.analysis.optimal_dispatch import sampling_choices
    from asyncfed.analysis.speed_up import groups_of_clients

    groups = groups_of_clients(times)
    service = [seconds for count, seconds in groups for _ in range(count)]
    plans = sampling_choices(service, concurrency, noise_ratio)
    equal = plans["equal"]
    first = [sum(count for count, _ in groups[:place]) for place in range(len(groups))]
    columns = [f"p, {seconds:g} s" for _, seconds in groups]
    print_line(f"{len(service):,} clients, {concurrency} tickets out at once; p is a client's chance of being drawn:")
    print_line(f"{'':16}" + "".join(f"{name:>12}" for name in [*columns, "updates/s", "updates", "time"]))
    for name, plan in plans.items():
        chances = [f"{plan.probabilities[place]:.4g}" for place in first]
        measures = [f"{plan.prediction.throughput:.4g}", f"{plan.updates / equal.updates:.3g}x"]
        cells = [*chances, *measures, f"{plan.seconds / equal.seconds:.3g}x"]
        print_line(f"{name:16}" + "".join(f"{cell:>12}" for cell in cells))


@explain.command()
def codecs(
    params: Annotated[int, typer.Option(min=1, help="Numbers in the model.")] = 1_000_000,
    double: Annotated[bool, typer.Option("--double", help="The model is in double precision.")] = False,
) -> None:
    """List codecs: bytes of a message, contraction, variance, and whether they need error feedback.

    For every v, in the mean over a codec's draws: |C(v) - v|^2 is at most (1 - contraction) |v|^2 and, if it is
    unbiased, at most variance |v|^2.
    """
    from asyncfed.analysis.codec_table import codec_rows, near_one

    rows = codec_rows(params, 8 if double else 4)
    print_line(f"{params:,} parameters in {'double' if double else 'single'} precision:")
    print_line(f"{'':44}{'bytes':>12}{'fewer':>8}{'contraction':>13}{'variance':>10}  {'biased':8}error feedback")
    for row in rows:
        found = row.constants
        contraction = "none" if found.contraction is None else near_one(found.contraction)
        variance = "" if found.variance is None else f"{found.variance:.4g}"
        feedback = "needed" if found.needs_error_feedback else "not needed" if found.may_be_fed_back else "not with it"
        print_line(
            f"{row.name:44}{row.num_bytes:12,}{f'{row.times_fewer:.3g}x':>8}{contraction:>13}"
            f"{variance:>10}  {'yes' if found.biased else 'no':8}{feedback}"
        )
    print_line("No bound of the certificates covers compressed changes: a certificate of such a run says so.")
