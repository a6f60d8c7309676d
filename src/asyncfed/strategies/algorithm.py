"""What is known of each algorithm: its name, a line about it, how it is made, and the facts of the table one can scan.

A file of this folder that brings an algorithm ends with `add_algorithm(Algorithm(...), __name__)`. Files are found by
themselves, so that the algorithm then has a name on the command line, a row in `docs/algorithms.md` and a place in
every test that holds for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Config
from asyncfed.core.types import Schedule, Work
from asyncfed.strategies.protocol import Strategy

Maker: TypeAlias = Callable[[int, Work, Schedule], Strategy]
"""`make(tickets, work, rate)`: the strategy with so many clients at work or in a cohort; `rate` is the paper's
schedule, for those that use it."""

Family: TypeAlias = Literal[
    "the paper's",
    "synchronous",
    "variance reduction",
    "staleness",
    "client table",
    "time-optimal",
    "semi-synchronous",
    "selection and fairness",
    "robust",
]
FAMILIES: tuple[Family, ...] = Family.__args__  # type: ignore[attr-defined]
"""In the order in which they are listed."""

Data: TypeAlias = Literal["any", "similar", "the same"]
Evidence: TypeAlias = Literal["text", "code", "text and code", "review", "adaptation", "memory", "ours"]


class Algorithm(Config):
    """One algorithm by name. The head of the module that adds it is its card, which `asyncfed card NAME` prints.

    Args:
        name: in lower case with underscores; what `--strategy` takes.
        summary: a line for lists, at most 100 characters, without a full stop.
        make: the strategy for so many tickets, a work and a schedule.
        family: under which heading it is listed.
        year: of the paper's first appearance.
        timing: whether the server waits for all it asked, for some, or for none; or asks one client at a time.
        data: what clients' data have to be for the optimum of all to be reached: "any"; "similar", where the error
            grows with the difference; "the same" distribution.
        server_memory: what the server keeps beside the model, in models: "0", "1", "n", "2n", "K", ...
        extra_down: what goes down beside the model, in models, or a few words.
        extra_up: what comes up beside one model or change, in models, or a few words.
        client_memory: what a client has to keep between its tickets; "0" if nothing.
        robust: whether it withstands clients that lie.
        private: whether it adds the noise of a privacy guarantee.
        certificate: the theorem that `asyncfed certify` holds it against; "" if there is none.
        evidence: what the rule was confirmed by: the paper's "text", the authors' "code", a "review" or other account
            of it (an abstract, notes), an "adaptation" (public code of others), "memory" alone; or it is "ours". The
            card says more.
        metrics: the numbers about an arrival that it decides by, beside those that every report has.
        optimum: whether, with local steps small enough, it tends to the optimum of all clients' equally weighted mean
            whatever their data and speeds. Tests hold it to that.

    >>> algorithm_named("fedasync").timing
    'asynchronous'
    """

    name: str
    summary: str
    make: Maker
    family: Family
    year: int
    timing: Literal["synchronous", "semi-synchronous", "asynchronous", "sequential"]
    data: Data
    server_memory: str = "0"
    extra_down: str = "0"
    extra_up: str = "0"
    client_memory: str = "0"
    robust: bool = False
    private: bool = False
    certificate: str = ""
    evidence: Evidence = "text"
    metrics: tuple[str, ...] = ()
    optimum: bool = False


_algorithms: dict[str, tuple[Algorithm, str]] = {}


def add_algorithm(algorithm: Algorithm, module: str) -> None:
    """Make an algorithm known.

    Args:
        algorithm: what is known of it.
        module: `__name__` of the module whose head is its card.

    Raises:
        ConfigError: another module has an algorithm of this name.
    """
    known = _algorithms.get(algorithm.name)
    if known is not None and known[1] != module:
        raise ConfigError(
            f'{module} cannot add the algorithm "{algorithm.name}": {known[1]} has one of that name. Choose another.'
        )
    _algorithms[algorithm.name] = (algorithm, module)


def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name: by family, in each by year and name."""
    order = sorted(_algorithms.values(), key=lambda known: _place(known[0]))
    return {algorithm.name: algorithm for algorithm, _ in order}


def algorithm_named(name: str) -> Algorithm:
    """One of `algorithms`."""
    return _algorithms[name][0]


def module_of(name: str) -> str:
    """The module whose head is the algorithm's card."""
    return _algorithms[name][1]


def _place(algorithm: Algorithm) -> tuple[int, int, str]:
    return FAMILIES.index(algorithm.family), algorithm.year, algorithm.name
