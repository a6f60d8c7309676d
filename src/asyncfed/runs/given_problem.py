"""Which problem a run learns: the one its experiment describes, or one that the caller gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncfed.core.errors import ConfigError
from asyncfed.experiment import Experiment
from asyncfed.problems.protocol import Problem

if TYPE_CHECKING:
    from asyncfed.data.data_source import PreparedData


def choose_problem(experiment: Experiment, given: Problem | None, prepared: PreparedData | None = None) -> Problem:
    """The problem `given`, if there is one and it has as many clients as the experiment says; else the experiment's.

    Args:
        experiment: what is run.
        given: a problem of the caller's own.
        prepared: the experiment's own data, if they are prepared already.
    """
    if given is None:
        return experiment.problem(prepared)
    if prepared is not None:
        raise ConfigError("problem and prepared are both given; prepared data are for the experiment's own problem.")
    if experiment.num_clients is not None and given.num_clients != experiment.num_clients:
        raise ConfigError(
            f"The experiment has num_clients = {experiment.num_clients}, but the problem given has "
            f"{given.num_clients} clients. Make them agree, or leave num_clients out: the problem then says how many."
        )
    return experiment.attacked(given)


def stored_problem(experiment: Experiment, given: Problem | None) -> Problem:
    """The problem of a run that was made before: the one `given`, or the experiment's; with the run's liars."""
    return experiment.problem() if given is None else experiment.attacked(given)
