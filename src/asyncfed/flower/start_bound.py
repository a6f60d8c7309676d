"""Start a program that ends with its parent: `python start_bound.py PARENT COMMAND...`, on Linux.

A process that was killed cannot end its children. Linux does it, if a child asks for it: this one does and becomes the
program, under the same number. It imports nothing of AsyncFed, for it is started for every process of a federation.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Ask for SIGTERM at the parent's end, then become the command."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before we asked
        sys.exit(f"process {parent}, which wanted this started, has ended")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
