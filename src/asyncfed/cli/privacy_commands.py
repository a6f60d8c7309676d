"""The commands of `asyncfed privacy`."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated, Literal

import typer

from asyncfed.cli.options import OutFolder, RunFile
from asyncfed.cli.output import console, print_line, save_figure
from asyncfed.core.errors import ConfigError

privacy = typer.Typer(
    help="What private runs promise, and whether they keep it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@privacy.callback()
def privacy_group() -> None:
    """What private runs promise, and whether they keep it."""


@privacy.command()
def plan(
    mode: Annotated[
        Literal["central", "tree", "local"], typer.Option(help="Where noise is added: see docs/privacy.md.")
    ] = "central",
    epsilon: Annotated[float | None, typer.Option(help="What a client may lose: the noise follows.")] = None,
    noise: Annotated[
        float | None, typer.Option(help="The noise multiplier, in clips: what a client loses follows.")
    ] = None,
    participations: Annotated[
        int, typer.Option(help="How often a client takes part at most: in releases, or with uploads.")
    ] = 10,
    delta: Annotated[float, typer.Option(help="Well below 1 / number of clients.")] = 1e-5,
    releases: Annotated[int | None, typer.Option(help="Of a tree: how many there are.")] = None,
    separation: Annotated[int, typer.Option(help="Of a tree: releases between two of the same client.")] = 0,
    clip: Annotated[float, typer.Option(help="The longest change of a client.")] = 1.0,
    buffer_size: Annotated[int, typer.Option(min=1, help="How many updates make a release.")] = 10,
    plot: Annotated[Path | None, typer.Option(help="Also draw epsilon by participations into this file.")] = None,
) -> None:
    """The noise that an epsilon takes, or the epsilon of some noise.

    Gaussian noise without sampling: whoever arrives takes part, so no amplification is claimed.
    """
    from asyncfed.privacy.planning import plan_noise
    from asyncfed.report.terminal.privacy_text import plan_table

    if not 0 < clip < inf:
        raise ConfigError(f"clip is {clip}; it must be a positive number.")
    planned = plan_noise(mode, participations, delta, epsilon, noise, releases, separation)
    spread = planned.multiplier * clip / (1 if mode == "local" else buffer_size)
    where = {"central": "a release", "tree": "a node of the tree", "local": "an upload"}[mode]
    print_line(
        f"{mode}: noise multiplier {planned.multiplier:.8f}, epsilon {planned.epsilon:.8f} at delta {delta:g} for "
        f"{participations} participations; standard deviation {spread:.4g} in every parameter of {where}"
    )
    console.print(plan_table(planned))
    if plot is not None:
        from asyncfed.report.figures.privacy_figure import draw_noise_plan

        save_figure(draw_noise_plan(planned), plot)


@privacy.command()
def audit(file: RunFile) -> None:
    """What a run promised its clients, what each has lost, and what is not protected.

    Read from the run's journal alone. Ends with 1 if caps were not kept, or nothing is claimed.
    """
    from asyncfed.api import load
    from asyncfed.report.terminal.privacy_text import account_table, certificate_lines

    certificate = load(file).privacy()
    for line in certificate_lines(certificate):
        print_line(line)
    if certificate.accounts:
        console.print(account_table(certificate))
    if not certificate.holds:
        raise typer.Exit(1)


@privacy.command()
def canaries(
    mode: Annotated[Literal["central", "tree", "local", "all"], typer.Option(help="What is audited.")] = "all",
    runs: Annotated[int, typer.Option(help="Runs with the canary, and as many without.")] = 500,
    epsilon: Annotated[float, typer.Option(help="What is claimed: the noise follows from it.")] = 5.0,
    delta: Annotated[float, typer.Option(help="Of every epsilon.")] = 1e-5,
    participations: Annotated[int, typer.Option(help="How often the canary takes part.")] = 4,
    noise_fraction: Annotated[
        float, typer.Option(help="What part of the noise is really added; 0.5: does the audit notice?")
    ] = 1.0,
    confidence: Annotated[float, typer.Option(help="Of the bounds.")] = 0.95,
    seed: Annotated[int, typer.Option(help="The same seed gives the same audit.")] = 0,
    out_dir: OutFolder = Path("runs/canaries"),
) -> None:
    """Try to tell from released models whether a client took part.

    Simulates small private runs many times, with a client whose change is known, the canary, and with its change zeroed
    out. How well the two are told apart bounds from below what is lost. Ends with 1 if that is more than is claimed.
    """
    from asyncfed.privacy_audit.audit import audit_canaries
    from asyncfed.privacy_audit.canary_experiments import MODES, canary_experiment
    from asyncfed.report.figures.canary_figure import draw_audit
    from asyncfed.report.terminal.progress import counting_bar

    names = list(MODES) if mode == "all" else [mode]
    audited = [canary_experiment(name, epsilon, participations, delta, noise_fraction) for name in names]
    refuted = False
    for each in audited:
        with counting_bar(console, f"{each.claim.mode}: runs", 2 * runs) as watch:
            found = audit_canaries(each, runs=runs, seed=seed, confidence=confidence, watch=watch)
        print_line(
            f"{each.claim.mode}: claimed mu {found.claimed_shift:.4f}, epsilon {found.claimed_epsilon:.4f} at delta "
            f"{delta:g}; with {100 * confidence:g} % confidence mu is at least {found.shift:.4f}, epsilon at least "
            f"{found.epsilon:.4f} ({found.epsilon_any_noise:.4f} whatever the noise): "
            f"{'THE CLAIM IS REFUTED' if found.refutes else 'the claim stands'}"
        )
        save_figure(draw_audit(found), out_dir / f"{each.claim.mode}.png")
        refuted = refuted or found.refutes
    if refuted:
        raise typer.Exit(1)
