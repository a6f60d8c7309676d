"""Background work that a page asks for: a report, an export, what another strategy would have done, what is guaranteed.

Each job is a process of its own, the command that a user would type, with its results in a temporary folder: the folder
of runs may be read-only, and what crashes or takes long disturbs nobody.
"""

from __future__ import annotations

import asyncio
import base64
import html
import os
import secrets
import shutil
import sys
import tempfile
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_RUNNING, MOST_KEPT = 2, 20
LONGEST_SECONDS = 900.0
LONGEST_ERROR = 2000

EXPORTS = {
    "csv": ("evaluations.csv", ("--table", "evaluations")),
    "parquet": ("evaluations.parquet", ("--table", "evaluations")),
    "rounds.csv": ("rounds.csv", ("--table", "rounds")),
    "events.csv": ("events.csv", ("--table", "events")),
    "events.parquet": ("events.parquet", ("--table", "events")),
    "model": ("model.json", ("--to", "model")),
}
"""By format: the name of the file, and what `asyncfed export` is told."""


class JobRefusedError(Exception):
    """A job that is not begun; the text says why."""


@dataclass
class Job:
    """One job: its command, its folder, and how it went."""

    name: str
    command: list[str]
    folder: Path
    result: str
    state: str = "running"
    error: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def describe(self) -> dict[str, Any]:
        """As `GET /api/jobs/{job}` says it."""
        url = f"/api/jobs/{self.name}/file/{self.result}" if self.state == "done" else None
        return {"state": self.state, "progress": None, "error": self.error, "result": url and {"url": url}}


class Jobs:
    """Starts jobs, knows how they are, and deletes everything at the end."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def report(self, run: Path) -> Job:
        """Write the report page of a run."""
        return self._begin("report.html", lambda out: ["report", str(run), "--out", str(out)])

    def export(self, run: Path, kind: str) -> Job:
        """Write one of a run's tables, or its model.

        Raises:
            JobRefusedError: there is no such format.
        """
        if kind not in EXPORTS:
            raise JobRefusedError(f"format is {kind[:40]!r}; it must be one of {', '.join(EXPORTS)}.")
        result, options = EXPORTS[kind]
        return self._begin(result, lambda out: ["export", str(run), str(out), *options])

    def what_if(self, run: Path, strategy: str) -> Job:
        """Simulate a run's clients, as fast as they were, with another strategy."""
        if not strategy.isidentifier():
            raise JobRefusedError(f"strategy is {strategy[:40]!r}; `asyncfed list strategies` names all.")
        picture = "what-if.png"
        return self._begin(
            "what-if.html",
            lambda out: ["replay", str(run), f"--strategy={strategy}", "--plot", str(out.with_name(picture))],
        )

    def certificate(self, run: Path) -> Job:
        """Say what is guaranteed for a run: which assumptions hold, and the bounds beside what it did."""
        return self._begin("certificate.html", lambda out: ["certify", str(run), "--out-dir", str(out.parent)])

    def find(self, name: str) -> Job | None:
        """The job of this name."""
        return self._jobs.get(name)

    def file(self, name: str, file: str) -> Path | None:
        """The result of a job that is done, if it has this name."""
        job = self._jobs.get(name)
        if job is None or job.state != "done" or file != job.result:
            return None
        return job.folder / job.result

    def _begin(self, result: str, arguments: Any) -> Job:
        if sum(job.state == "running" for job in self._jobs.values()) >= MOST_RUNNING:
            raise JobRefusedError(f"{MOST_RUNNING} jobs are running already; wait until one is done.")
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="asyncfed-dashboard-"))
        name = secrets.token_hex(8)
        folder = self._folder / name
        folder.mkdir()
        job = Job(name, [sys.executable, "-m", "asyncfed", *arguments(folder / result)], folder, result)
        self._jobs[name] = job
        job.task = asyncio.create_task(_run(job))
        while len(self._jobs) > MOST_KEPT:
            oldest = next(iter(self._jobs))
            _end(self._jobs.pop(oldest))
        return job

    async def close(self) -> None:
        """End what is running and delete all results."""
        for job in self._jobs.values():
            if job.task is not None:
                job.task.cancel()
        await asyncio.gather(*(job.task for job in self._jobs.values() if job.task), return_exceptions=True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _end(job: Job) -> None:
    if job.task is not None:
        job.task.cancel()
    shutil.rmtree(job.folder, ignore_errors=True)


async def _run(job: Job) -> None:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "MPLBACKEND": "Agg"}
    process = await asyncio.create_subprocess_exec(
        *job.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            printed, complaints = await process.communicate()
        if process.returncode:
            job.state, job.error = "failed", complaints.decode(errors="replace")[-LONGEST_ERROR:].strip()
        else:
            await asyncio.to_thread(_write_page, job, printed.decode(errors="replace"))
            job.state = "done"
    except TimeoutError:
        job.state, job.error = "failed", f"It took longer than {LONGEST_SECONDS:g} s and was ended."
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _write_page(job: Job, printed: str) -> None:
    """A command that prints a table and draws a picture becomes one page with both."""
    page, title = job.folder / job.result, Path(job.result).stem.replace("-", " ").capitalize()
    pictures = sorted(job.folder.glob("*.png"))
    if pictures:
        drawn = "".join(
            f'<img alt="" src="data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}">'
            for picture in pictures
        )
        style = "body{font-family:sans-serif;margin:2em}img{max-width:100%}pre{overflow-x:auto}"
        page.write_text(
            f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{style}</style>"
            f"<h1>{title}</h1><pre>{html.escape(printed)}</pre>{drawn}"
        )
