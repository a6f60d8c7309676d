"""The command line: assembles the groups of commands. A command imports what it needs when it is called."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.markup import escape

from asyncfed.cli import (
    advise_commands,
    arena_commands,
    communication_commands,
    dashboard_commands,
    delay_commands,
    journal_commands,
    list_commands,
    predict_commands,
    robustness_commands,
    run_commands,
    study_commands,
)
from asyncfed.cli.explain_commands import explain
from asyncfed.cli.flower_commands import flower
from asyncfed.cli.imports import import_parts
from asyncfed.cli.name_help import help_text
from asyncfed.cli.output import complaints
from asyncfed.cli.privacy_commands import privacy
from asyncfed.core.errors import AsyncFedError
from asyncfed.version import __version__

# Help in plain text: drawing it with rich takes longer than all else that --help does.
app = typer.Typer(
    help="Asynchronous federated learning that can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
NAMING = (
    run_commands.run,
    run_commands.live,
    study_commands.compare,
    study_commands.fairness,
    study_commands.certify,
    advise_commands.advise,
)
"""Commands that take strategies, problems or delays by name: their help lists these."""

for command in (
    run_commands.run,
    run_commands.resume,
    run_commands.live,
    journal_commands.show,
    journal_commands.export,
    journal_commands.report,
    journal_commands.verify,
    journal_commands.replay,
    predict_commands.predict,
    study_commands.compare,
    study_commands.fairness,
    study_commands.certify,
    advise_commands.advise,
    arena_commands.arena,
    robustness_commands.robustness,
    communication_commands.communication,
    dashboard_commands.dashboard,
    study_commands.reproduce,
    list_commands.presets,
    list_commands.card,
    delay_commands.delays,
):
    app.command(epilog=help_text() if command in NAMING else None)(command)
app.command("list")(list_commands.list_names)
app.add_typer(explain, name="explain")
app.add_typer(flower, name="flower")
app.add_typer(privacy, name="privacy")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"asyncfed {__version__}")
        raise typer.Exit


@app.callback()
def before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    imports: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE_OR_FILE",
            help="Import a module or a .py file first, for the strategies and other parts it registers; repeatable.",
        ),
    ] = None,
) -> None:
    """What the options before a command's name do."""
    for source in imports or []:
        import_parts(source)


def main() -> None:
    """Run the command line of this process; exit with 2 after an error that AsyncFed raises on purpose."""
    try:
        app()
    except AsyncFedError as error:
        complaints.print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
