"""Answers to the pages' questions about a run, for those with the token and, cut down, for one site alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from asyncfed.dashboard.access import Viewer
from asyncfed.dashboard.client_list import make_client_list, matching_clients
from asyncfed.dashboard.client_numbers import ORDERS, client_numbers
from asyncfed.dashboard.client_page import make_client_page
from asyncfed.dashboard.curves import make_curves
from asyncfed.dashboard.lanes import CODES, MOST_CLIENTS, make_lanes, merge_times
from asyncfed.dashboard.plain_numbers import as_number
from asyncfed.dashboard.query import Query
from asyncfed.dashboard.refusals import make_refusals
from asyncfed.dashboard.run_summary import make_summary
from asyncfed.dashboard.run_view import RunView
from asyncfed.dashboard.site_scope import curves_for_site, summary_for_site
from asyncfed.dashboard.staleness import make_staleness

Answer = dict[str, Any]
Compute = Callable[[RunView, Viewer, Query], Answer]


def summary(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}`."""
    if viewer.client is not None:
        return summary_for_site(view, viewer.client)
    return make_summary(view)


def curves(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/curves`."""
    made = make_curves(view, query.whole("points", 600, least=10, most=5000))
    return made if viewer.client is None else curves_for_site(made)


def staleness(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/staleness`."""
    return make_staleness(view, viewer.client)


def clients(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/clients`."""
    order = query.choice("order", ORDERS)
    if viewer.client is not None:
        only = make_client_page(view, viewer.client)["row"]
        return {"total": 1, "order": order, "clients": [only]}
    first, count = query.whole("first", 0), query.whole("count", 200, most=1000)
    return make_client_list(view, order, first, count, query.text("find"))


def lanes(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/lanes`."""
    with view.lock:
        chosen = client_numbers(view).order(query.choice("order", ORDERS))
        if viewer.client is not None:
            chosen = np.array([viewer.client])
        chosen = matching_clients(view, chosen, query.text("find"))
        now = max(view.now, 1e-9)
        begin = query.number("from", 0.0)
        end = query.number("to", now)
        if not end > begin:
            begin, end = 0.0, now
        first, count = query.whole("first", 0), query.whole("count", 50, most=MOST_CLIENTS)
        width = query.whole("width", 800, least=10, most=4000)
        shown = chosen[first : first + count]
        return {
            "from": begin,
            "to": end,
            "now": as_number(now),
            "total": len(chosen),
            "codes": CODES,
            "clients": make_lanes(view, shown, begin, end, width),
            "merges": merge_times(view, shown, begin, end),
        }


def client(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/clients/{client}`."""
    page = make_client_page(view, query.client)
    return {**page.pop("row"), **page}


def refusals(view: RunView, viewer: Viewer, query: Query) -> Answer:
    """`GET /api/runs/{id}/refusals`."""
    return make_refusals(view, query.whole("first", 0), query.whole("count", 200, most=1000), viewer.client)


ANSWERS: dict[str, Compute] = {
    "": summary,
    "/curves": curves,
    "/staleness": staleness,
    "/clients": clients,
    "/lanes": lanes,
    "/clients/{client:int}": client,
    "/refusals": refusals,
}
"""By what follows `/api/runs/{id}`."""
