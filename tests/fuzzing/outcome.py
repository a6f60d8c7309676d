"""Calling a command in this process, and what became of it."""

import contextlib
import io
import signal
import sys
import traceback
import warnings
from functools import cache
from typing import NamedTuple
from unittest.mock import patch

ALLOWED_SECONDS = 10.0
"""No input may keep a command busy for longer. Seconds of this process, so that a busy machine is no reason to fail."""

ALLOWED_WAITING = 60.0
"""Nor may a command wait for longer, by the clock on the wall."""

EXIT_CODES = (0, 1, 2, 130)
"""Well; the run ended badly or is not verified; a mistake of the user's; interrupted."""


class Outcome(NamedTuple):
    """What a command printed, its exit code, and the traceback if it ended with one."""

    code: int
    text: str
    traceback: str

    @property
    def is_clear(self):
        return not self.traceback and self.code in EXIT_CODES and "Traceback" not in self.text


class TookTooLong(BaseException):
    """Not an Exception, so that nothing on the way takes it for a failure of its own."""


def call_command(arguments):
    """Run `asyncfed ARGUMENTS` as a process would, but in this one: importing everything anew takes a second."""
    from asyncfed.cli import app

    printed, failure, code, before = io.StringIO(), "", 0, sys.argv
    sys.argv = ["asyncfed", *arguments]
    signal.signal(signal.SIGALRM, _give_up)
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_REAL, ALLOWED_WAITING)
    signal.setitimer(signal.ITIMER_PROF, ALLOWED_SECONDS)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with patch.object(app, "app", built_command_line()):
                app.main()
    except SystemExit as ended:
        code = ended.code or 0
    except (Exception, TookTooLong):
        failure = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        sys.argv = before
    return Outcome(code, printed.getvalue(), failure)


@cache
def built_command_line():
    """What typer makes of the functions of all commands, which takes as long as most commands."""
    from typer.main import get_command

    from asyncfed.cli.app import app

    return get_command(app)


def _give_up(number, frame):
    raise TookTooLong(f"more than {ALLOWED_SECONDS:g} s of work, or {ALLOWED_WAITING:g} s of waiting")
