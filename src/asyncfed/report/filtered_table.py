"""The table of clients whose updates were filtered, dropped or refused, as text."""

from __future__ import annotations

from collections.abc import Sequence

from asyncfed.analysis.filtered_updates import FilteredClient
from asyncfed.report.units import format_quantity

TITLE = "Updates that had no part in the model"


def filtered_rows(clients: Sequence[FilteredClient]) -> list[dict[str, str]]:
    """A row a client, cells as text by column."""
    return [
        {
            "client": f"{row.client}{' (excluded)' if row.excluded else ''}",
            "updates": str(row.updates),
            "filtered": str(row.filtered),
            "dropped": str(row.dropped),
            "refused": str(row.refused),
            "share": f"{row.share:.0%}",
            "last": format_quantity("elapsed", row.last),
            "reason": row.reason,
        }
        for row in clients
    ]
