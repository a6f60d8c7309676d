"""Run: a recorded run, and what can be said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.problems.population import Population
from asyncfed.runs.result import RecordedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from asyncfed.analysis.convergence import Convergence
    from asyncfed.analysis.personalization import PersonalizedClients, PersonalModels
    from asyncfed.analysis.table_model import TableModel
    from asyncfed.privacy.certificate import PrivacyCertificate
    from asyncfed.report.figures.certificate_figure import DrawableCertificate
    from asyncfed.report.figures.client_figure import DrawableClientTable
    from asyncfed.theory.bias import Bias

MOST_TO_OPTIMISE = 200_000_000
"""Rows times params, up to which a run's table names the optimum's objective."""

TableName: TypeAlias = Literal["evaluations", "rounds", "events", "clients"]


class Run(RecordedRun):
    """What a run left behind, and what can be said about it.

    `evaluations` and `rounds` are dicts of arrays by column; `params` is the last model that was saved; `verdict` and
    `reason` say how it ended. It keeps the experiment and the problem it was made with; a run that was loaded from a
    file makes both again from what the file says.

    >>> import asyncfed as af
    >>> run = af.run(af.presets.regression(rounds=2))
    >>> run.verdict, run.rounds["round"].tolist()
    ('finished', [1, 2])
    """

    def certificate(self) -> DrawableCertificate:
        """What is guaranteed for this run beside what it did.

        Returns:
            The certificate: which theorems apply, their bounds, and the run's own path beside them.
        """
        from asyncfed.certificates.certificate import certificate_of
        from asyncfed.report.figures.certificate_figure import DrawableCertificate

        return DrawableCertificate.of(certificate_of(self))

    def privacy(self) -> PrivacyCertificate:
        """What the run promised its clients, and what each has lost, from its journal.

        Returns:
            The certificate; its `claim` is None if the experiment promised nothing.
        """
        from asyncfed.runs.privacy_record import certify_privacy

        return certify_privacy(self.journal, self.experiment)

    def bias(self) -> Bias:
        """How much each client's updates counted, and what that did to the optimum.

        Returns:
            Shares and weights of the clients, and the optimum of the objective that was really minimised.
        """
        from asyncfed.analysis.participation import bias_of_run

        return bias_of_run(self)

    @cached_property
    def convergence(self) -> Convergence:
        """Whether the run had converged when it ended, and what to do if it had not."""
        from asyncfed.analysis.convergence import judge_convergence

        return judge_convergence(self)

    @cached_property
    def optimal_value(self) -> float | None:
        """The objective at the problem's optimum; None where there is none, or where finding it takes too long."""
        problem = self.problem
        if not isinstance(problem, Population) and problem.num_params * problem.num_examples.sum() > MOST_TO_OPTIMISE:
            return None  # of a population, there is a formula or nothing
        optimum = problem.optimum()
        return None if optimum is None else float(problem.evaluate(optimum)["objective"])

    @cached_property
    def clients(self) -> DrawableClientTable:
        """How well the common model fits each client, beside a model trained on that client's rows alone.

        The comparison is made on held-out rows, and of a run that had converged; else the table says why there is none.
        """
        return self._measure_clients(None)

    def personalize(self) -> PersonalizedClients:
        """Fine-tune the common model for each client on its own rows, for as long as its validation rows favour it.

        Returns:
            The clients' models, and the table of clients with what each gains, measured on other rows.

        Raises:
            ConfigError: the run has no validation rows.
        """
        from asyncfed.analysis.personalization import PersonalizedClients, personalize
        from asyncfed.attacks import without_liars
        from asyncfed.problems.protocol import as_scoring_problem

        found = personalize(self.experiment, as_scoring_problem(without_liars(self.problem)), self.params)
        return PersonalizedClients(found.models, found.steps, self._measure_clients(found))

    def table_model(self, personalize: bool = False) -> TableModel:
        """The model of a run on a table, with all it needs to predict new rows.

        Args:
            personalize: whether it also holds a model of each client's own; see `personalize`.

        Returns:
            The model; `save` writes it to a file without any row of the data.

        Raises:
            ConfigError: the run was not made on a table with names of columns.
        """
        from asyncfed.analysis.table_model import table_model
        from asyncfed.problems.protocol import as_scoring_problem

        names = as_scoring_problem(self.problem).client_names
        own = dict(zip(names, self.personalize().models, strict=True)) if personalize else None
        return table_model(self.experiment, self.params, own)

    def _measure_clients(self, personal: PersonalModels | None) -> DrawableClientTable:
        from asyncfed.analysis.client_outcomes import measure_clients
        from asyncfed.attacks import without_liars
        from asyncfed.report.figures.client_figure import DrawableClientTable

        table = measure_clients(
            self.experiment,
            without_liars(self.problem),
            self.params,
            self.participation(),
            self.journal.event_rows(),
            convergence=self.convergence,
            personal=personal,
        )
        return DrawableClientTable(table.columns, table.part, table.not_compared)

    @property
    def known_clients(self) -> DrawableClientTable | None:
        """`clients`, or None where the file does not say enough: data of your own, or no model yet.

        Of private runs nothing is measured on clients' data.
        """
        if not self.experiment.measures_clients:
            return None
        try:
            return self.clients
        except (ConfigError, JournalError):
            return None

    def plot(self) -> Figure:
        """Draw the run: loss, staleness, clock and participation.

        Returns:
            A Matplotlib figure.
        """
        from asyncfed.report.figures.run_figure import draw_run

        return draw_run(self)

    def to_frame(self, table: TableName = "evaluations") -> DataFrame:
        """A table of the run as a pandas data frame, one row a measurement, round, event or client.

        Args:
            table: `evaluations`, `rounds`, `events` or `clients`.

        Returns:
            A data frame with the table's columns.
        """
        from asyncfed.analysis.frames import to_frame

        tables: dict[str, Callable[[], Mapping[str, object]]] = {
            "evaluations": lambda: self.evaluations,
            "rounds": lambda: self.rounds,
            "events": self.journal.event_columns,
            "clients": lambda: self.clients.columns,
        }
        if table not in tables:
            raise ConfigError(f'There is no table "{table}"; a run has {", ".join(tables)}.')
        return to_frame(tables[table]())
