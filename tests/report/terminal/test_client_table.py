"""The clients of a run in a terminal."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from asyncfed.report.terminal.client_table import client_table


def text_of(table, width):
    console = Console(width=width, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def test_it_shows_what_the_plain_text_shows(made_clients):
    clients = made_clients([0.5, 2.0, 1.0])
    shown = [word for word in text_of(client_table(clients, 100), 100).split() if "─" not in word]
    assert shown == [word for word in str(clients).split() if "─" not in word]


@pytest.mark.parametrize("width", [80, 60, 44])
def test_every_number_is_whole_whatever_the_width(made_clients, width):
    losses = [1234.5, 0.00012345, 1.0]
    clients = made_clients(
        losses,
        accuracy=np.array([0.123456, 1.0, 0.5]),
        alone_accuracy=np.full(3, 0.98765),
        name=np.array(["x" * 40] * 3),
    )
    text = text_of(client_table(clients, width), width)
    assert all(len(line) <= width for line in text.splitlines())
    rows = [line.split() for line in text.splitlines() if line.strip().startswith("xxx")]
    assert len(rows) == 3
    assert "1,234" in rows[0]
    assert "0.000123" in rows[1]
    assert not any("…" in number for row in rows for number in row[1:])
    assert ("Left out for want of room: alone accuracy, merges" in " ".join(text.split())) == (width <= 80)
