"""The loss, the weight and the gain of each client of a run: a table by column, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncfed.analysis.frames import to_frame
from asyncfed.analysis.plain_text import format_number, text_table

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 50
"""Of more clients than this, those with the largest losses are shown."""

SHOWN_COLUMNS = ("rows", "merges", "weight", "loss", "alone", "gain", "accuracy", "alone_accuracy")
"""What is shown of a client besides its name, where it is known."""


@dataclass(frozen=True, eq=False)
class ClientTable:
    """A row for each client, in the order of the clients' numbers.

    Args:
        columns: arrays by name, one value a client: `client` (its number), `name`, `rows` (training examples),
            `rows_measured`, `merges` (its merged updates), `share` (of all merged updates), `weight` (its share of all
            weights that merges gave), `loss` (of the common model on the client's own rows), `alone` (of a model
            trained on the client's own rows only), `gain` (`alone − loss`, positive where federating paid),
            `alone_epochs` (0: that model is the minimiser), for classification also `accuracy` and `alone_accuracy`,
            and `worst` (whether it is in the tenth with the largest losses).
        part: the rows on which losses were measured: "test", "validation" if there are none, else "training".
    """

    columns: Mapping[str, np.ndarray]
    part: str

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["client"])

    @property
    def has_accuracy(self) -> bool:
        """Whether the problem is a classification, so that accuracies are known."""
        return "accuracy" in self.columns

    @property
    def shown_columns(self) -> list[str]:
        """The names of the columns that a printed table shows beside the client's name."""
        return [name for name in SHOWN_COLUMNS if name in self.columns]

    @property
    def alone_description(self) -> str:
        """How the clients' own models were found."""
        epochs = self.columns["alone_epochs"]
        at_optimum, longest = int((epochs == 0).sum()), int(epochs.max())
        if not longest:
            return "the minimiser of the client's own loss"
        trained = f"trained for {longest} epochs on the client's own rows"
        return f"{trained}, but at {at_optimum} clients the minimiser" if at_optimum else trained

    @property
    def title(self) -> str:
        """What a printed table shows: all clients, or those with the largest losses."""
        if len(self) <= MOST_ROWS:
            return f"clients, on their {self.part} rows"
        return f"the {MOST_ROWS} of {len(self):,} clients with the largest losses, on their {self.part} rows"

    @property
    def caption(self) -> str:
        """What a reader of a printed table should know, and the summary."""
        found = {name: format_number(value) for name, value in self.summary().items()}
        losses = f"mean {found['mean loss']}, spread {found['spread of losses']}, worst tenth {found['worst tenth']}"
        evenness, better_off = found["Jain's index"], found["better off federated"]
        weights = f"{found['smallest effective weight']} to {found['largest effective weight']}"
        return (
            f"alone: {self.alone_description}. * worst tenth. Losses: {losses}. Share of clients better off federated: "
            f"{better_off}. Evenness of merges (Jain's index): {evenness}. Effective weights: {weights}"
        )

    def shown_rows(self) -> list[list[str]]:
        """The cells of a printed table, a row a client: its name, marked * in the worst tenth, and `shown_columns`."""
        shown = np.arange(len(self))
        if len(self) > MOST_ROWS:
            shown = np.argsort(-np.nan_to_num(self["loss"], nan=-np.inf), kind="stable")[:MOST_ROWS]
        return [
            [
                f"{self['name'][row]}{' *' if self['worst'][row] else ''}",
                *(format_number(float(self[name][row])) for name in self.shown_columns),
            ]
            for row in shown
        ]

    def summary(self) -> dict[str, float]:
        """How evenly losses, gains, merges and weights are spread over the clients; NaN where nothing was measured."""
        loss, gain = (self.columns[name][np.isfinite(self.columns[name])] for name in ("loss", "gain"))
        merges = self.columns["merges"].astype(np.float64)
        squares = float(np.square(merges).sum())
        return {
            "mean loss": float(loss.mean()) if len(loss) else np.nan,
            "spread of losses": float(loss.std()) if len(loss) else np.nan,
            "worst tenth": float(loss_of_worst_tenth(loss)) if len(loss) else np.nan,
            "better off federated": float((gain > 0).mean()) if len(gain) else np.nan,
            "Jain's index": float(merges.sum() ** 2 / (len(merges) * squares)) if squares else 0.0,
            "largest effective weight": float(self.columns["weight"].max()),
            "smallest effective weight": float(self.columns["weight"].min()),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame, a row a client."""
        return to_frame(self.columns)

    def to_lists(self) -> dict[str, list[Any]]:
        """The columns as lists, for files."""
        return {name: values.tolist() for name, values in self.columns.items()}

    def __str__(self) -> str:
        names = ["client", *(name.replace("_", " ") for name in self.shown_columns)]
        return text_table(self.title, names, self.shown_rows(), self.caption)


def loss_of_worst_tenth(losses: np.ndarray) -> float:
    """The mean of the largest tenth, of one client at least.

    >>> loss_of_worst_tenth(np.arange(20.0))
    18.5
    """
    count = max(1, len(losses) // 10)
    return float(np.sort(losses)[-count:].mean())


def worst_tenth(losses: np.ndarray) -> np.ndarray:
    """True for the tenth of the clients, one at least, with the largest losses; clients without one are left out."""
    known = np.flatnonzero(np.isfinite(losses))
    marked = np.zeros(len(losses), bool)
    if len(known):
        marked[known[np.argsort(losses[known], kind="stable")][-max(1, len(known) // 10) :]] = True
    return marked
