"""Memory of a process and of all it started, from /proc."""

from __future__ import annotations

from pathlib import Path

PAGE = 4096


def descendants(pid: int) -> list[int]:
    """The process itself, its children, theirs, and so on."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            parents.setdefault(int(after_name[1]), []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += parents.get(found[-1], [])
    return found


def private_bytes(pid: int) -> int:
    """Memory that is the process's own: what it shares with others, such as libraries, is left out. 0 if it is gone."""
    try:
        resident, shared = (Path(f"/proc/{pid}/statm").read_text().split())[1:3]
    except (OSError, ValueError):
        return 0
    return PAGE * (int(resident) - int(shared))
