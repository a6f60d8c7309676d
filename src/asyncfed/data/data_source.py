"""What a data source is: a value that gives clients their rows, on request of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from asyncfed.data.clients import Clients
from asyncfed.data.federated_summary import Preparation
from asyncfed.data.holdout import HeldOut, Holdout, Part
from asyncfed.data.split_protocol import Split
from asyncfed.data.splits import IID
from asyncfed.data.table import Dtype
from asyncfed.registry import declare_part

DEFAULT_CLIENTS = 10
"""How many clients an experiment has that does not say, on data that do not say either."""


@dataclass(frozen=True)
class DataRequest:
    """What an experiment wants of its data.

    Args:
        split: which client owns which row, where the data do not say.
        num_clients: how many clients, at least 1; None: as many as the data name, or else 10.
        seed: the seed of every draw, 0 or more.
        dtype: "float32" or "float64".
        holdout: the fractions of each client's rows that are not trained on; None: all are.
        labels: True for a classifier, whose targets are -1 and +1.
        classes: True for a classifier of several classes, whose targets are the numbers 0, 1, … of classes.
    """

    split: Split = field(default_factory=IID)
    num_clients: int | None = None
    seed: int = 0
    dtype: Dtype = "float64"
    holdout: Holdout | None = None
    labels: bool = False
    classes: bool = False

    @property
    def split_clients(self) -> int:
        """To how many clients a split assigns rows: `num_clients`, or 10 if that is None."""
        return DEFAULT_CLIENTS if self.num_clients is None else self.num_clients


@dataclass(frozen=True, eq=False)
class PreparedData:
    """The clients with the rows they train on, what was held out, and how rows became numbers.

    Args:
        clients: the rows that each client trains on.
        held_out: the rows not trained on, by part: "validation", "test".
        preparation: what every client does to its raw rows; None where rows were numbers from the start.
        notes: what was left out and filled, sentences for people.
    """

    clients: Clients
    held_out: Mapping[Part, HeldOut] = field(default_factory=dict)
    preparation: Preparation | None = None
    notes: tuple[str, ...] = ()


@runtime_checkable
class DataSource(Protocol):
    """The `data` of an experiment; `asyncfed.register("data")` makes a source of your own known by its kind.

    >>> import numpy as np
    >>> from asyncfed import Config
    >>> from asyncfed.data import Table, prepare_table
    >>> class Line(Config, tag_field="kind", tag="line"):
    ...     slope: float = 2.0
    ...     names_clients = False
    ...
    ...     def prepare(self, request):
    ...         x = np.linspace(0.0, 1.0, 100, dtype=request.dtype)
    ...         return prepare_table(Table.from_arrays(x[:, None], self.slope * x, labels=False), request)
    >>> Line().prepare(DataRequest(num_clients=4)).clients.num_examples
    array([25, 25, 25, 25])
    """

    @property
    def names_clients(self) -> bool:
        """Whether the data say which client owns which row; else the split does."""

    def prepare(self, request: DataRequest) -> PreparedData:
        """The clients with their rows. The same request must give the same rows, for a run repeats it."""


declare_part("data", DataSource)
