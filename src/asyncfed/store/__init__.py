"""The journal of a run: one SQLite file with every event, metric and checkpoint."""

from asyncfed.store.journal import Journal
from asyncfed.store.ledger import Ledger

__all__ = ["Journal", "Ledger"]
