"""Run: what a finished (or interrupted) run left behind, read from its journal and nothing else."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.experiment import Experiment, stored
from asyncfed.analysis.client_outcomes import local_performance
from asyncfed.problems.protocol import Problem
from asyncfed.analysis.client_table import ClientTable
from asyncfed.report.figures.client_figure import DrawableClientTable
from asyncfed.store.journal import Journal


class Run:
    """`evaluations` and `rounds` are dicts of arrays by column; `params` is the last model that was saved.

    `problem` is what was learnt, if it is at hand; all but `clients` is read from the journal and nothing else.
    """

    def __init__(self, journal: Journal, problem: Problem | None = None) -> None:
        self.journal = journal
        self._problem = problem

    @property
    def path(self) -> Path | None:
        return self.journal.path

    @cached_property
    def header(self) -> dict[str, Any]:
        return self.journal.header()

    @property
    def experiment(self) -> Experiment:
        return stored(self.header["experiment"], self.path)

    @property
    def verdict(self) -> str:
        """finished, diverged, starved or interrupted."""
        return str(self.header["verdict"])

    @property
    def reason(self) -> str:
        """A sentence that says why the run ended."""
        return str(self.header["reason"])

    @property
    def advice(self) -> str:
        """What to try next if the run did not end well."""
        return {
            "diverged": "Try a smaller strategy.work.learning_rate, fewer local epochs, or another aggregate: mixing "
            "and latest never diverge from staleness, sums and averages of deltas do.",
            "starved": "Check churn and dropout: somebody must be there to work.",
        }.get(self.verdict, "")

    @property
    def finished(self) -> bool:
        return self.verdict != "interrupted"

    @cached_property
    def params(self) -> np.ndarray:
        checkpoint = self.journal.checkpoint()
        if checkpoint is None:
            raise JournalError(f"{self.path} holds no model yet: the run was interrupted before its first checkpoint.")
        return checkpoint[1]["params"]

    @cached_property
    def evaluations(self) -> dict[str, np.ndarray]:
        return {name: np.array(values) for name, values in self.journal.evaluation_columns().items()}

    @cached_property
    def rounds(self) -> dict[str, np.ndarray]:
        return {name: np.array(values) for name, values in self.journal.columns("rounds").items()}

    @property
    def sha256(self) -> dict[str, str]:
        """The digests that say whether two runs are the same: of all events in order, and of the model's bytes."""
        return {"journal": self.journal.sha256(), "params": params_sha256(self.params)}

    def participation(self) -> np.ndarray:
        """How many merged updates each client contributed."""
        counts = np.zeros(self.header["num_clients"], np.int64)
        checkpoint = self.journal.checkpoint()
        if checkpoint is not None:
            ledger = checkpoint[0]["ledger"]
            counts[ledger["clients"]] = ledger["merges"]
        return counts

    def certificate(self) -> Any:
        """What is guaranteed for this run beside what it did: see `asyncfed.certificates.Certificate`."""
        from asyncfed.certificates import certificate_of

        return certificate_of(self)

    def bias(self) -> Any:
        """Whose voice counted how much, and what that did to the optimum: see `asyncfed.theory.bias.Bias`."""
        from asyncfed.analysis.participation import bias_of_run

        return bias_of_run(self)

    @cached_property
    def problem(self) -> Problem:
        """What was learnt, with its data: made again from the experiment, unless it is at hand."""
        problem = self.experiment.problem() if self._problem is None else self._problem
        if problem.fingerprint() != self.header["problem"]:
            raise JournalError(
                f"{self.path} was run on data that its experiment does not describe, or that have changed since. Pass "
                "the same again: af.load(path, problem=...)."
            )
        return problem

    @cached_property
    def clients(self) -> DrawableClientTable:
        """How each client is served, by the common model and by one trained alone; see `asyncfed.analysis.client_outcomes`."""
        table = local_performance(
            self.experiment, self.problem, self.params, self.participation(), self.journal.event_rows()
        )
        return DrawableClientTable(table.columns, table.part)

    @property
    def known_clients(self) -> ClientTable | None:
        """`clients`, or None where the file does not say enough: data of your own, or no model yet."""
        try:
            return self.clients
        except (ConfigError, JournalError):
            return None

    def plot(self) -> Any:
        """A Matplotlib figure of the run: loss, staleness, clock and who took part."""
        from asyncfed.report.figures.run_figure import draw_run

        return draw_run(self)

    def __repr__(self) -> str:
        last = {name: values[-1] for name, values in self.evaluations.items() if len(values)}
        return (
            f"Run({self.header['experiment']['name']}: {self.verdict}, round {last.get('round', 0)}, "
            f"objective {last.get('objective', float('nan')):.6g}, {last.get('elapsed', 0.0):.6g} s)"
        )


def params_sha256(params: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(params).tobytes()).hexdigest()


def load(path: Path | str, problem: Problem | None = None) -> Run:
    """Open a run's file for reading. `problem` is the run's own, if its experiment does not describe it."""
    journal = Journal.open(path)
    journal.rehash()
    return Run(journal, problem)
