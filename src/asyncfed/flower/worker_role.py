"""Whether this process is a node's worker, and the program that its app has made there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncfed.flower.node_program import NodeProgram


class WorkerRole:
    """`client_app` puts its program here in a worker, which has imported the app for that; nobody else changes it."""

    def __init__(self) -> None:
        self.is_worker = False
        self.program: NodeProgram | None = None


ROLE = WorkerRole()
