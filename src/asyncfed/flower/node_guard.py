"""NodeGuard: the limits that a node's owner has set, and how many uploads they have been used up by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from asyncfed.core.errors import ConfigError
from asyncfed.core.types import Work
from asyncfed.live.client_guard import LeastNoise

KEYS = ("least-noise", "most-uploads", "uploads-file")


class NodeGuard(NamedTuple):
    """A node's own limits, and the file in which it counts its uploads, a line for each.

    The state that Flower keeps for a node is that of one run, and is gone with the SuperNode. The file outlasts both:
    neither a restart nor another run begins to count anew.
    """

    limits: LeastNoise
    file: Path

    def admit(self, work: Work) -> None:
        """Refuse this work, or count it before anything is trained: a crash may cost an upload, and never gives one."""
        self.limits.check_work(work)
        self.limits.check_uploads(self.uploads_made())
        with self.file.open("ab") as file:
            file.write(b"upload\n")
            file.flush()
            os.fsync(file.fileno())
        self.limits.check_uploads(self.uploads_made() - 1)  # a process at work at the same time may have counted, too

    def uploads_made(self) -> int:
        """How many uploads were counted."""
        return self.file.read_bytes().count(b"\n") if self.file.exists() else 0


def read_guard(node: Mapping[str, Any]) -> NodeGuard | None:
    """The guard of a node's own configuration (`--node-config`); None if it sets no limits.

    >>> read_guard({"partition-id": 0}) is None
    True
    """
    given: list[Any] = [node.get(key) for key in KEYS]
    if given == [None, None, None]:
        return None
    noise, uploads, file = given
    if type(noise) not in (int, float) or type(uploads) is not int or type(file) is not str:
        raise ConfigError(
            f"This node's least-noise, most-uploads and uploads-file are {noise!r}, {uploads!r} and {file!r}; they "
            "must be a number, a whole number and a path. Start the SuperNode with all three in its --node-config, "
            "such as 'least-noise=2.5 most-uploads=15 uploads-file=\"/var/lib/asyncfed/uploads\"', or with none."
        )
    path = Path(file)
    if not (path.is_absolute() and path.parent.is_dir()):
        raise ConfigError(
            f"This node's uploads-file is {file!r}; it must be an absolute path in a folder that exists. Make the "
            "folder, or name another one."
        )
    return NodeGuard(LeastNoise(multiplier=float(noise), uploads=uploads), path)
