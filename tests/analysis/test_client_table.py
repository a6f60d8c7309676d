"""The table of a run's clients: its summary, its text and its other forms."""

import sys

import numpy as np
import pytest

from asyncfed.analysis.client_table import loss_of_worst_tenth, worst_tenth
from asyncfed.core.errors import ConfigError


def test_the_worst_tenth():
    losses = np.array([3.0, np.nan, *range(18)])
    assert worst_tenth(losses).sum() == 1
    assert worst_tenth(losses)[-1]
    assert loss_of_worst_tenth(np.array([5.0])) == 5.0
    assert not worst_tenth(np.array([np.nan])).any()


def test_the_summary_is_worked_out_by_hand(made_clients):
    summary = made_clients([0.5, 1.5, np.nan], weight=np.array([0.2, 0.3, 0.5])).summary()
    assert summary["mean loss"] == 1.0
    assert summary["spread of losses"] == 0.5
    assert summary["worst tenth"] == 1.5
    assert summary["better off federated"] == 0.5
    assert summary["Jain's index"] == pytest.approx(36 / (3 * 14))
    assert (summary["largest effective weight"], summary["smallest effective weight"]) == (0.5, 0.2)


def test_the_summary_of_clients_without_losses_or_merges(made_clients):
    summary = made_clients([np.nan, np.nan], merges=np.zeros(2, int)).summary()
    assert np.isnan(summary["mean loss"])
    assert np.isnan(summary["better off federated"])
    assert summary["Jain's index"] == 0.0


def test_as_text(made_clients):
    lines = str(made_clients([0.5, 2.0])).splitlines()
    assert lines[0] == "clients, on their test rows"
    assert lines[1].split() == ["client", "rows", "merges", "weight", "loss", "alone", "gain"]
    assert lines[3].split() == ["shop", "0", "1,500", "1", "0.5", "0.5", "1", "0.5"]
    assert lines[4].split() == ["shop", "1", "*", "1,500", "2", "0.5", "2", "1", "-1"]
    assert "Jain's index" in " ".join(lines[5:])
    assert max(map(len, lines)) == len(lines[2])


def test_accuracies_are_shown_where_they_are_known(made_clients):
    table = made_clients([0.5], accuracy=np.array([0.75]), alone_accuracy=np.array([0.5]))
    assert table.has_accuracy
    assert table.shown_columns[-2:] == ["accuracy", "alone_accuracy"]
    assert str(table).splitlines()[3].split()[-2:] == ["0.75", "0.5"]


def test_of_many_clients_those_with_the_largest_losses_are_shown(made_clients):
    table = made_clients(np.arange(80.0))
    assert table.title.startswith("the 50 of 80 clients with the largest losses")
    rows = table.shown_rows()
    assert len(rows) == 50
    assert rows[0][0] == "shop 79 *"
    assert rows[-1][0] == "shop 30"


@pytest.mark.parametrize(
    ("epochs", "words"),
    [
        ([0, 0], "the minimiser of the client's own loss"),
        ([7, 7], "trained for 7 epochs on the client's own rows"),
        ([7, 0], "trained for 7 epochs on the client's own rows, but at 1 clients the minimiser"),
    ],
)
def test_it_says_how_the_models_alone_were_found(made_clients, epochs, words):
    assert made_clients([1.0, 2.0], alone_epochs=np.array(epochs)).alone_description == words


def test_as_lists_and_as_a_data_frame(made_clients):
    pandas = pytest.importorskip("pandas")
    table = made_clients([0.5, 2.0])
    assert table.to_lists()["loss"] == [0.5, 2.0]
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(table.columns)
    assert len(frame) == len(table) == 2


def test_without_pandas_it_says_what_to_install(made_clients, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pip install pandas, or use the columns as arrays"):
        made_clients([1.0]).to_pandas()
