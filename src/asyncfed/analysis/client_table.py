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

SHOWN_COLUMNS = (
    "rows", "merges", "weight", "loss", "accuracy", "alone", "gain", "gain_low", "gain_high", "alone_accuracy",
    "personalized", "personal_gain", "personal_gain_low", "personal_gain_high", "personalized_accuracy",
)  # fmt: skip
"""What is shown of a client besides its name, where it is known."""

GAINS = {"Federated, against alone": "gain", "Personalised, against common": "personal_gain"}

JAIN = "Jain's index of participation"


@dataclass(frozen=True, eq=False)
class ClientTable:
    """A row for each client, in the order of the clients' numbers.

    Args:
        columns: arrays by name, one value a client: `client` (its number), `name`, `rows` (training examples),
            `rows_measured`, `merges` (its merged updates), `share` (of all merged updates), `weight` (its share of all
            weights that merges gave), `loss` (of the common model on the client's own rows), for classification also
            `accuracy`, and `worst` (whether it is in the tenth with the largest losses). Where they could be compared:
            `alone` (of a model trained on the client's own rows only), `gain` (`alone − loss`, positive where
            federating paid), `gain_low` and `gain_high` (its 95 % interval, by bootstrap over the client's rows),
            `alone_epochs` (0: that model is the minimiser), `alone_accuracy`. Where models were personalised:
            `personalized` (the loss of the client's fine-tuned model), `personal_gain` (`loss − personalized`) with its
            interval, `personal_steps`, `personalized_accuracy`.
        part: the rows on which losses were measured: "test", "validation" if there are none, else "training".
        not_compared: why there is no `alone` and no `gain`; empty if there is.
    """

    columns: Mapping[str, np.ndarray]
    part: str
    not_compared: str = ""

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
        """How the clients' own models were found, or why there are none."""
        if self.not_compared:
            return f"not compared with models of the clients' own: {self.not_compared}"
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
        alone = self.alone_description if self.not_compared else f"alone: {self.alone_description}"
        gains = [f"{words}: {self._count(gain)}." for words, gain in GAINS.items() if gain in self.columns]
        worst = found["loss of the worst tenth"]
        return " ".join(
            [
                f"* worst tenth. {alone[0].upper()}{alone[1:]}.",
                *gains,
                f"Losses: mean {found['mean loss']}, spread {found['spread of losses']}, worst tenth {worst}.",
                f"Evenness of merges (Jain's index): {found[JAIN]}. Effective weights:",
                f"{found['smallest effective weight']} to {found['largest effective weight']}",
            ]
        )

    @property
    def printed_columns(self) -> list[str]:
        """What a printed table shows of a client besides its name: `shown_columns`, gains being their intervals."""
        return [name for name in self.shown_columns if not name.endswith(("_low", "_high"))]

    def shown_rows(self) -> list[list[str]]:
        """The cells of a printed table, a row a client: its name, marked * in the worst tenth, `printed_columns`."""
        shown = np.arange(len(self))
        if len(self) > MOST_ROWS:
            shown = np.argsort(-np.nan_to_num(self["loss"], nan=-np.inf), kind="stable")[:MOST_ROWS]
        return [
            [
                f"{self['name'][row]}{' *' if self['worst'][row] else ''}",
                *(self._cell(name, int(row)) for name in self.printed_columns),
            ]
            for row in shown
        ]

    def _cell(self, name: str, row: int) -> str:
        low = self.columns.get(f"{name}_low")
        if low is None or not np.isfinite(low[row]):
            return format_number(float(self[name][row]))
        high = self.columns[f"{name}_high"]
        if low[row] == high[row]:
            return format_number(float(low[row]))
        return f"{format_number(float(low[row]))} to {format_number(float(high[row]))}"

    def _count(self, gain: str) -> str:
        """How many clients gain, lose, or can not be told, by the interval of this gain."""
        low, high = self.columns[f"{gain}_low"], self.columns[f"{gain}_high"]
        better, worse = int((low > 0).sum()), int((high < 0).sum())
        unknown = len(self) - better - worse
        return f"{better} of {len(self)} clients better off, {worse} worse off, {unknown} not distinguishable"

    def summary(self) -> dict[str, float]:
        """How evenly losses, gains, merges and weights are spread over the clients; NaN where nothing was measured."""
        loss = self.columns["loss"][np.isfinite(self.columns["loss"])]
        merges = self.columns["merges"].astype(np.float64)
        squares = float(np.square(merges).sum())
        return {
            "mean loss": float(loss.mean()) if len(loss) else np.nan,
            "spread of losses": float(loss.std()) if len(loss) else np.nan,
            "loss of the worst tenth": float(loss_of_worst_tenth(loss)) if len(loss) else np.nan,
            **self._gains("gain", "better off federated", "worse off federated"),
            **self._gains("personal_gain", "better off personalised", "worse off personalised"),
            JAIN: float(merges.sum() ** 2 / (len(merges) * squares)) if squares else 0.0,
            "largest effective weight": float(self.columns["weight"].max()),
            "smallest effective weight": float(self.columns["weight"].min()),
        }

    def _gains(self, gain: str, better: str, worse: str) -> dict[str, float]:
        """The shares of the clients whose interval of this gain lies above 0, and below; none where it is unknown."""
        if gain not in self.columns:
            return {}
        low, high = self.columns[f"{gain}_low"], self.columns[f"{gain}_high"]
        return {better: float((low > 0).mean()), worse: float((high < 0).mean())}

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame, a row a client."""
        return to_frame(self.columns)

    def to_lists(self) -> dict[str, list[Any]]:
        """The columns as lists, for files."""
        return {name: values.tolist() for name, values in self.columns.items()}

    def __str__(self) -> str:
        names = ["client", *(name.replace("_", " ") for name in self.printed_columns)]
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
