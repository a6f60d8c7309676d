"""The table of a run's clients: its summary, its text and its other forms."""

import sys

import numpy as np
import pytest

from asyncfed.analysis.client_table import ClientTable, loss_of_worst_tenth, worst_tenth
from asyncfed.core.errors import ConfigError


def test_the_worst_tenth():
    losses = np.array([3.0, np.nan, *range(18)])
    assert worst_tenth(losses).sum() == 1
    assert worst_tenth(losses)[-1]
    assert loss_of_worst_tenth(np.array([5.0])) == 5.0
    assert not worst_tenth(np.array([np.nan])).any()


def test_the_summary_is_worked_out_by_hand(made_clients):
    summary = made_clients([0.5, 1.5, 1.0], weight=np.array([0.2, 0.3, 0.5])).summary()
    assert summary["mean loss"] == 1.0
    assert summary["spread of losses"] == pytest.approx((0.5 / 3) ** 0.5)
    assert summary["loss of the worst tenth"] == 1.5
    assert summary["better off federated"] == summary["worse off federated"] == pytest.approx(1 / 3)
    assert summary["Jain's index of participation"] == pytest.approx(36 / (3 * 14))
    assert (summary["largest effective weight"], summary["smallest effective weight"]) == (0.5, 0.2)


def test_the_summary_of_clients_without_losses_or_merges(made_clients):
    summary = made_clients([np.nan, np.nan], merges=np.zeros(2, int)).summary()
    assert np.isnan(summary["mean loss"])
    assert summary["better off federated"] == 0.0
    assert summary["Jain's index of participation"] == 0.0


def test_as_text(made_clients):
    lines = str(made_clients([0.5, 2.0, 1.0])).splitlines()
    assert lines[0] == "clients, on their test rows"
    assert lines[1].split() == ["client", "rows", "merges", "weight", "loss", "alone", "gain"]
    assert lines[3].split() == ["shop", "0", "1,500", "1", "0.333", "0.5", "1", "0.25", "to", "0.75"]
    assert lines[4].split() == ["shop", "1", "*", "1,500", "2", "0.333", "2", "1", "-1.25", "to", "-0.75"]
    words = " ".join(lines[6:])
    assert "Federated, against alone: 1 of 3 clients better off, 1 worse off, 1 not distinguishable." in words
    assert "Jain's index" in words
    assert max(map(len, lines)) == len(lines[2])


def test_where_nothing_was_compared_it_says_why(made_clients):
    made = made_clients([0.5, 2.0])
    columns = {name: values for name, values in made.columns.items() if "gain" not in name and "alone" not in name}
    table = ClientTable(columns, "training", "no rows were held out")
    assert table.printed_columns == ["rows", "merges", "weight", "loss"]
    assert "Not compared with models of the clients' own: no rows were held out." in " ".join(str(table).split())
    assert "better off federated" not in table.summary()


def test_an_interval_of_nothing_is_a_number(made_clients):
    table = made_clients([0.5], gain=np.zeros(1), gain_low=np.zeros(1), gain_high=np.zeros(1))
    assert table.shown_rows()[0][-1] == "0"


def test_accuracies_are_shown_where_they_are_known(made_clients):
    table = made_clients([0.5], accuracy=np.array([0.75]), alone_accuracy=np.array([0.5]))
    assert table.has_accuracy
    assert [name for name in table.printed_columns if "accuracy" in name] == ["accuracy", "alone_accuracy"]
    assert str(table).splitlines()[3].split()[-1] == "0.5"


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
