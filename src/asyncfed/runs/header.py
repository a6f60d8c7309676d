"""The header of a run's file: what it says about itself, and whether an experiment and a problem are those it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from asyncfed.core.errors import ConfigError, JournalError
from asyncfed.core.record import UNSET, to_plain
from asyncfed.experiment import Experiment, differences, stored
from asyncfed.problems.protocol import Problem, as_scoring_problem
from asyncfed.version import __version__

MOST_NAMED = 100_000
"""Of more clients a file holds no names: whoever follows the run reads its header again and again."""

LONGEST_NAME = 200
"""Characters of a client's name that are kept."""


def new_header(
    experiment: Experiment,
    problem: Problem,
    *,
    own_problem: bool = False,
    own_delays: bool = False,
    live: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What the file of a new run says about itself.

    Args:
        experiment: what is run.
        problem: what is learnt, of which the file keeps the fingerprint.
        own_problem: whether it was given by the caller, so that the experiment may describe other data.
        own_delays: whether the clients' clock was given by the caller.
        live: what only a live run has to say.
    """
    names = client_names(problem) if experiment.privacy is UNSET else None  # who takes part is nobody's business
    return {
        "asyncfed": __version__,
        "experiment": _written(experiment),
        "problem": problem.fingerprint(),
        "num_clients": problem.num_clients,
        **({} if names is None else {"client_names": names}),
        "own_problem": own_problem,
        "own_delays": own_delays,
        **({} if live is None else {"live": live}),
        "verdict": "interrupted",
        "reason": "it was stopped before its end",
    }


def client_names(problem: Problem) -> list[str] | None:
    """What the clients are called, for those who watch the run; None if they are only numbered, or too many.

    Names of any length are cut: a file can be read without them.
    """
    if problem.num_clients > MOST_NAMED:
        return None
    try:
        names = [str(name)[:LONGEST_NAME] for name in as_scoring_problem(problem).client_names]
    except ConfigError:  # it does not know single clients
        return None
    is_numbered = len(names) != problem.num_clients or names == [str(client) for client in range(len(names))]
    return None if is_numbered else names


def check_same_problem(header: dict[str, Any], problem: Problem, path: Path | str) -> None:
    """Refuse a problem that is not the one the run was made with."""
    if problem.fingerprint() != header["problem"]:
        raise JournalError(
            f"{path} was run on other data or another loss (its problem is {header['problem'][:12]}, this one "
            f"{problem.fingerprint()[:12]}). Give the same problem again; nothing was changed."
        )


def same_experiment(header: dict[str, Any], given: Experiment | None, path: Path | None) -> Experiment:
    """The run's experiment: as given, if it is the same, or as the header describes it."""
    if given is None:
        return stored(header["experiment"], path)
    changes = differences(header["experiment"], given)
    if changes:
        raise JournalError(
            f"{path} was started with another experiment, and mixing two would be neither. Changed: "
            f"{'; '.join(changes)}. Resume it as it was, or start a new run with another --out. Nothing was changed."
        )
    return given


def _written(experiment: Experiment) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = to_plain(experiment)
    except TypeError as error:
        raise ConfigError(
            f"The experiment has a part that cannot be written down ({error}). Pass functions and data of your own to "
            "af.run as `delays=` and `problem=` instead."
        ) from error
    return plain
