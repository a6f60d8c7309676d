"""RecordedRun: what a finished (or interrupted) run left behind, read from its journal."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from asyncfed.core.errors import JournalError
from asyncfed.core.record import to_json
from asyncfed.engine.stopping import kept_row
from asyncfed.experiment import Experiment, stored
from asyncfed.problems.client_sizes import MOST_LISTED_CLIENTS, require_listed
from asyncfed.problems.protocol import Problem
from asyncfed.store.error_messages import explain_damage
from asyncfed.store.files import find_writer
from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger
from asyncfed.store.schema import MERGE


class RecordedRun:
    """A run as its journal records it, with the experiment and the problem it was made with, if they are at hand.

    Attributes:
        journal: the run's file, or what would be in it.
        given_experiment: the experiment the run was made with, or None: then the header says which.
        given_problem: the problem the run was made with, or None: then the experiment describes it.
    """

    def __init__(self, journal: Journal, experiment: Experiment | None = None, problem: Problem | None = None) -> None:
        self.journal = journal
        self.given_experiment = experiment
        self.given_problem = problem

    @property
    def path(self) -> Path | None:
        """The run's file; None if it was kept in memory."""
        return self.journal.path

    @cached_property
    def header(self) -> dict[str, Any]:
        """What the file says about itself: version, experiment, verdict and digests."""
        return self.journal.header()

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment that was run."""
        if self.given_experiment is not None:
            return self.given_experiment
        return stored(self.header["experiment"], self.path)

    @cached_property
    def problem(self) -> Problem:
        """What was learnt, with its data: as it was given, or made again from the experiment."""
        problem: Problem = self.experiment.problem() if self.given_problem is None else self.given_problem
        if problem.fingerprint() != self.header["problem"]:
            why = (
                "was run with a problem of your own, which its file cannot hold"
                if self.header.get("own_problem", False)  # files of earlier versions do not say
                else "was run on data that its experiment does not describe, or that have changed since"
            )
            raise JournalError(f"{self.path} {why}. Pass the same again: af.load(path, problem=...).")
        return problem

    @property
    def verdict(self) -> str:
        """finished, diverged, starved or interrupted."""
        return str(self.header["verdict"])

    @property
    def writer(self) -> str | None:
        """Which process is writing the run at this moment, in words; None if none is."""
        return None if self.path is None or self.finished else find_writer(self.path)

    @property
    def reason(self) -> str:
        """A sentence that says why the run ended, or that it did not."""
        return str(self.header["reason"]) if self.writer is None else "it is still running"

    @property
    def advice(self) -> str:
        """What to try next if the run did not end well."""
        if "were skipped" in self.reason:
            return (
                "Clients find nothing worth sending, or the strategy accepts nothing: lower the threshold of "
                "send_if, or set its at_most, so that nobody is silent for ever."
            )
        if "were dropped" in self.reason:
            return (
                "The strategy accepts nobody's updates: loosen what it accepts, check its trusted rows, or use another "
                "one. Why each was dropped: `asyncfed export RUN events.csv --table events`."
            )
        return {
            "diverged": "Try a smaller strategy.work.learning_rate, fewer local epochs, or another aggregate: mixing "
            "and latest never diverge from staleness, sums and averages of deltas do.",
            "starved": "Somebody must be there to work: check churn and dropout, and in a live run the replies that "
            "were refused (`asyncfed export RUN events.csv --table events`).",
        }.get(self.verdict, "")

    @property
    def finished(self) -> bool:
        """False if the run was interrupted and can be resumed."""
        return self.verdict != "interrupted"

    @cached_property
    def params(self) -> np.ndarray:
        """The model that the run is left with, as a flat vector: the last that was saved, or the best measured.

        Which of them is said by `stopping.keep` of the experiment.
        """
        checkpoint = self.journal.checkpoint()
        if checkpoint is None:
            raise JournalError(f"{self.path} holds no model yet: the run was interrupted before its first checkpoint.")
        with explain_damage(self.path, "checkpoint"):
            return checkpoint[1].get("best", checkpoint[1]["params"])

    @cached_property
    def kept(self) -> int:
        """The row of `evaluations` that measured the model in `params`."""
        if not len(self.evaluations["updates"]):
            raise JournalError(
                f"{self.path} holds no measurement of its model: it was stopped before the first, or is damaged. "
                f"`asyncfed resume {self.path}` continues it."
            )
        with explain_damage(self.path, "evaluation"):
            return kept_row(self.experiment.stopping, self.evaluations)

    @property
    def final(self) -> dict[str, float]:
        """What was measured of the model in `params`, by column of `evaluations`."""
        return {name: float(values[self.kept]) for name, values in self.evaluations.items()}

    @cached_property
    def evaluations(self) -> dict[str, np.ndarray]:
        """Every measurement of the model by column: updates, version, round, elapsed (s) and each metric."""
        return {name: np.array(values) for name, values in self.journal.evaluation_columns().items()}

    @cached_property
    def rounds(self) -> dict[str, np.ndarray]:
        """The account of every round by column: clock (s), energy (J), bytes, staleness, participation."""
        return {name: np.array(values) for name, values in self.journal.columns("rounds").items()}

    @cached_property
    def merge_info(self) -> dict[str, np.ndarray]:
        """What the strategy's rule wrote down at each merge, by column, with `version`; empty if it wrote nothing."""
        if '"rule"' not in to_json(self.header["experiment"]["strategy"]):
            return {}  # known without reading every event
        written = [(event.version, event.info) for event in self.journal.event_rows() if event.kind == MERGE]
        # What has a slash is about one ticket; a key of noise is no number to look at.
        found = dict.fromkeys(name for _, info in written for name in info if "/" not in name)
        names = [name for name in found if name != "noise_key"]
        if not names:
            return {}
        with explain_damage(self.path, "merge"):
            columns = {name: np.array([info.get(name, np.nan) for _, info in written], np.float64) for name in names}
        return {"version": np.array([version for version, _ in written]), **columns}

    @property
    def sha256(self) -> dict[str, str]:
        """The digests that say whether two runs are the same: of all events in order, and of the model's bytes."""
        return {"journal": self.journal.sha256(), "params": params_sha256(self.params)}

    def participation(self) -> np.ndarray:
        """How many merged updates each client contributed, shape (clients,); see `merges_by_client` for very many."""
        require_listed(self.header["num_clients"], "An array with the merges of each client")
        counts = np.zeros(self.header["num_clients"], np.int64)
        merges = self.merges_by_client()
        with explain_damage(self.path, "checkpoint"):
            counts[list(merges)] = list(merges.values())
        return counts

    def participation_of_known(self) -> np.ndarray:
        """`participation`, or where there are too many clients for an array, only of those that were merged."""
        if self.header["num_clients"] <= MOST_LISTED_CLIENTS:
            return self.participation()
        return np.array(list(self.merges_by_client().values()), np.int64)

    def merges_by_client(self) -> dict[int, int]:
        """How many merged updates each client contributed that was merged at all, in the order of the first."""
        checkpoint = self.journal.checkpoint()
        if checkpoint is None:
            return {}
        with explain_damage(self.path, "checkpoint"):
            return Ledger.from_snapshot(checkpoint[0]["ledger"]).merges_by_client

    def __repr__(self) -> str:
        last = {name: values[-1] for name, values in self.evaluations.items() if len(values)}
        return (
            f"{type(self).__name__}({self.header['experiment']['name']}: {self.verdict}, round {last.get('round', 0)}, "
            f"objective {last.get('objective', float('nan')):.6g}, {last.get('elapsed', 0.0):.6g} s)"
        )


def params_sha256(params: np.ndarray) -> str:
    """The digest of a model's bytes."""
    return hashlib.sha256(np.ascontiguousarray(params).tobytes()).hexdigest()


def load_run(path: Path | str, experiment: Experiment | None = None, problem: Problem | None = None) -> RecordedRun:
    """Open a run's file for reading; see `asyncfed.load`."""
    journal = Journal.open(path)
    journal.rehash()
    return RecordedRun(journal, experiment, problem)
