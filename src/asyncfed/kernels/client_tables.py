"""What is known of clients, kept for those that were ever touched: hash tables of compiled loops.

A table says in which order the clients are: the entry of a number has the place of the client of that number, who is at
the place of that number, and what is counted of the client. Both halves are in one entry because a client that was
never moved is found at its own place: a draw reads one entry, wherever in memory it lies. Whoever is not stored is at
the place of its own number, as in `core.pool.ClientPool`, the readable twin.

A number's first slot are its low bits: a table that is longer than there are clients is an array. The next slots are
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

ENTRY = np.dtype([(name, np.int64) for name in ("key", "place", "client", "merges", "row")], align=True)
"""Of one number: where the client is, who is at the place, how often the client was merged, and where its latest model
is (-1: nowhere)."""

NOBODY = -1
"""The key of a slot that is free."""

_32 = np.uint64(32)


def empty_table(entries: int) -> Array:
    """A table for up to so many entries, which fill three quarters of it at most."""
    table = np.zeros(1 + (1 << max(4, (4 * entries // 3).bit_length())), ENTRY)
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
def entry_of(table: Array, number: int) -> int:
    """The slot of this number, which is stored from now on."""
    slot = slot_of(table, number)
    if table[slot].key == NOBODY:
        entry = table[slot]
        entry.key, entry.place, entry.client, entry.merges, entry.row = number, number, number, 0, -1
        table[-1].key += 1
    return slot


@compiled
def client_at(table: Array, place: int) -> int:
    """Who is at this place."""
    slot = slot_of(table, place)
    return int(table[slot].client) if table[slot].key != NOBODY else place


@compiled
def put_at(table: Array, place: int, client: int) -> None:
    """Store who is at this place."""
    table[entry_of(table, place)].client = client


@compiled
def move_client(table: Array, client: int, place: int) -> None:
    """Let the client change places with whoever is at this place."""
    own, there = entry_of(table, client), entry_of(table, place)
    before, other = table[own].place, table[there].client
    put_at(table, before, other)
    table[there].client = client
    table[entry_of(table, other)].place = before
    table[own].place = place


@compiled
def copy_table(table: Array, larger: Array) -> None:
    """Put all entries of a table into an empty one."""
    for slot in range(table.shape[0] - 1):
        if table[slot].key != NOBODY:
            larger[slot_of(larger, table[slot].key)] = table[slot]
    larger[-1].key = table[-1].key


@compiled
def store_order(table: Array, places: Array, clients: Array) -> None:
    """Store that `clients[i]` is at place `places[i]`."""
    for i in range(places.shape[0]):
        put_at(table, places[i], clients[i])
        table[entry_of(table, clients[i])].place = places[i]


@compiled
def store_counts(table: Array, clients: Array, merges: Array) -> None:
    """Store how often each of these clients was merged."""
    for i in range(clients.shape[0]):
        table[entry_of(table, clients[i])].merges = merges[i]


@compiled
def store_rows(table: Array, clients: Array, rows: Array) -> None:
    """Store where the latest model of each of these clients is."""
    for i in range(clients.shape[0]):
        table[entry_of(table, clients[i])].row = rows[i]


@compiled
def merges_of(table: Array, clients: Array) -> Array:
    """How often each of these clients was merged."""
    counts = np.zeros(clients.shape[0], np.int64)
    for i in range(clients.shape[0]):
        counts[i] = table[entry_of(table, clients[i])].merges
    return counts
