"""How far a study of many cells is, on the terminal; and names that its commands take as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import typer

from asyncfed.cli.output import console, print_line, print_stopped

LINE_SECONDS = 30.0
"""How often a line says how far it is where there is no terminal to draw a bar on."""


def split_names(text: str | None) -> list[str] | None:
    """The names in an option, which are separated by commas; None if it was not given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


@contextmanager
def cell_progress(
    what: str, total: int, note: Callable[[int], str] = lambda done: ""
) -> Iterator[Callable[[int, int, str], None]]:
    """A bar with the time that is left; a line every half minute where there is no terminal.

    Args:
        what: what is counted.
        total: how many there are.
        note: more about so many that are done, for the line.
    """
    from asyncfed.report.terminal.progress import counting_bar

    began = printed = monotonic()
    first: int | None = None  # what was there already took no time

    with counting_bar(console, what, total) as show:

        def watch(done: int, of: int, last: str) -> None:
            nonlocal printed, first
            now = monotonic()
            first = done if first is None else first
            show(done, of)
            if not console.is_terminal and (now - printed >= LINE_SECONDS or done == of):
                printed = now
                left = (now - began) / max(done - first, 1) * (of - done)
                print_line(f"{done} of {of}{note(done)}; {left / 60:.1f} min left; last: {last}")

        yield watch


@contextmanager
def stoppable(folder: Path) -> Iterator[None]:
    """Ctrl-C ends the command; what was computed is kept in this folder."""
    try:
        yield
    except KeyboardInterrupt:
        print_stopped(f"stopped; what was computed is kept in {folder}, and the same command goes on")
        raise typer.Exit(130) from None
