"""What is known of clients, kept for those that were ever touched: hash tables of compiled loops.

Two tables say in which order the clients are: `CLIENT` has the place of each and what is counted of it, `PLACE` who is
at each place. Whoever is not stored is at the place of its own number, as in `core.pool.ClientPool`, their readable
twin. A key's first slot are its low bits: a table that is longer than there are clients is an array. The next ones are
tried in steps that follow from all bits, so that clients in a row are not in each other's way. Nothing is ever removed.
The slot behind all others counts the entries; the caller makes room before there are more than were asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.keyed_words import GOLDEN

Array = NDArray[Any]

CLIENT = np.dtype([(name, np.int64) for name in ("key", "place", "merges", "row")], align=True)
"""A client: its place in the order, how often it was merged, and where its latest model is; -1: nowhere."""

PLACE = np.dtype([(name, np.int64) for name in ("key", "client")], align=True)
"""A place in the order: who is there."""

NOBODY = -1
"""The key of a slot that is free."""

_32 = np.uint64(32)


def empty_table(kind: np.dtype[Any], entries: int) -> Array:
    """A table for up to so many entries, which fill three quarters of it at most."""
    table = np.zeros(1 + (1 << max(4, (4 * entries // 3).bit_length())), kind)
    table["key"] = NOBODY
    table["key"][-1] = 0
    return table


def entries_of(table: Array) -> Array:
    """What is stored in a table, in no order."""
    slots = table[:-1]
    stored: Array = slots[slots["key"] != NOBODY]
    return stored


@compiled
def slot_of(table: Array, key: int) -> int:
    """The slot with this key, or the free one where it belongs."""
    last = table.shape[0] - 2
    slot = key & last
    if table[slot].key != key and table[slot].key != NOBODY:
        step = np.int64((np.uint64(key) * GOLDEN) >> _32) | 1  # odd, so that every slot is reached
        while table[slot].key != key and table[slot].key != NOBODY:
            slot = (slot + step) & last
    return int(slot)


@compiled
def entry_of(clients: Array, client: int) -> int:
    """The slot of this client, which is stored from now on."""
    slot = slot_of(clients, client)
    if clients[slot].key == NOBODY:
        entry = clients[slot]
        entry.key, entry.place, entry.merges, entry.row = client, client, 0, -1
        clients[-1].key += 1
    return slot


@compiled
def client_at(places: Array, place: int) -> int:
    """Who is at this place."""
    slot = slot_of(places, place)
    return int(places[slot].client) if places[slot].key != NOBODY else place


@compiled
def put_at(places: Array, place: int, client: int) -> None:
    """Store who is at this place."""
    entry = places[slot_of(places, place)]
    places[-1].key += entry.key == NOBODY
    entry.key, entry.client = place, client


@compiled
def move_client(clients: Array, places: Array, client: int, place: int) -> None:
    """Let the client change places with whoever is at this place."""
    own, other = entry_of(clients, client), client_at(places, place)
    before = clients[own].place
    put_at(places, before, other)
    put_at(places, place, client)
    clients[entry_of(clients, other)].place = before
    clients[own].place = place


@compiled
def copy_table(table: Array, larger: Array) -> None:
    """Put all entries of a table into an empty one."""
    for slot in range(table.shape[0] - 1):
        if table[slot].key != NOBODY:
            larger[slot_of(larger, table[slot].key)] = table[slot]
    larger[-1].key = table[-1].key


@compiled
def store_order(clients: Array, places: Array, at: Array, who: Array) -> None:
    """Store that `who[i]` is at place `at[i]`."""
    for i in range(at.shape[0]):
        put_at(places, at[i], who[i])
        clients[entry_of(clients, who[i])].place = at[i]


@compiled
def store_counts(clients: Array, who: Array, merges: Array) -> None:
    """Store how often each of these clients was merged."""
    for i in range(who.shape[0]):
        clients[entry_of(clients, who[i])].merges = merges[i]


@compiled
def store_rows(clients: Array, who: Array, rows: Array) -> None:
    """Store where the latest model of each of these clients is."""
    for i in range(who.shape[0]):
        clients[entry_of(clients, who[i])].row = rows[i]


@compiled
def merges_of(clients: Array, who: Array) -> Array:
    """How often each of these clients was merged."""
    counts = np.zeros(who.shape[0], np.int64)
    for i in range(who.shape[0]):
        counts[i] = clients[entry_of(clients, who[i])].merges
    return counts
