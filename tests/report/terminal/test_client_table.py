"""The clients of a run in a terminal."""

from io import StringIO

from rich.console import Console

from asyncfed.report.terminal.client_table import client_table


def test_it_shows_what_the_plain_text_shows(made_clients):
    clients = made_clients([0.5, 2.0, 1.0])
    console = Console(width=100, record=True, file=StringIO())
    console.print(client_table(clients))
    assert console.export_text().split() == str(clients).split()
