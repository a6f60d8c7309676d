"""The shape of a run's file. Change it, and SCHEMA_VERSION goes up by one."""

from __future__ import annotations

APPLICATION_ID = 0x41464C31  # "AFL1": distinguishes our files from other SQLite databases
SCHEMA_VERSION = 6
READABLE_VERSIONS = (1, 2, 3, 4, 5, 6)
# Version 1 had neither refused replies nor payloads, version 2 neither wakes nor cancels; version 3 had no released
# messages, no skipped tickets, and kept of messages the model that they led to; version 4 had all arrays
# of a checkpoint in its row; version 5 had all small ones there, however many, and released messages in one row each.

DISPATCH, REPORT, MERGE, DROP, LOST, JOIN, LEAVE, STOP, REFUSED, WAKE, CANCEL, SKIPPED = range(12)
KIND_NAMES = (
    *("dispatch", "report", "merge", "drop", "lost", "join", "leave", "stop", "refused"),
    *("wake", "cancel", "skipped"),
)

# An event is a row (seq, time, kind, ticket, client, version, a, b, detail), read by name in `events.Event`:
#
#   kind      ticket  client  version            a                    b                     detail (interned JSON)
#   dispatch  x       x       downloaded         memory to use, if    -                     the work
#                                                an uplink remembers
#   report    x       x       at arrival         duration, s          energy, J             metrics, if there are any;
#                                                                                           the memory used, if another
#   merge     x       x       after the merge    weight               keep                  payload, rule, end of round,
#             (several tickets: ticket, client, a are null and detail lists tickets and     info of the rule
#             weights)
#   drop      x       x       now                -                    -                     reason
#   lost      x       x       now                seconds since sent   energy, J             reason, if one is known
#   join      -       x       now                examples             -                     -
#   leave     -       x       now                -                    -                     reason, if one is known
#   stop      -       -       now                -                    -                     reason
#   refused   x or -  x       now                1 if a fault, or 0   -                     reason
#   wake      -       -       now                number of the timer  -                     -
#   cancel    x       x       now                seconds since sent   energy, J             reason
#   skipped   x       x       at arrival         duration, s          energy, J             the memory used, if another
#
# Events are stored in blocks, each of so many MessagePack arrays: one SQLite row per event would cost more than to
# simulate it. `Journal.event_rows` reads them, `asyncfed export` writes them as CSV or Parquet.

ROUND_COLUMNS = (
    "round",
    "version",
    "updates",
    "elapsed",
    "delay_spread",
    "longest",
    "cumulative_spread",
    "cumulative_longest",
    "energy",
    "bytes_down",
    "bytes_up",
    "staleness_mean",
    "staleness_max",
    "lost",
    "dropped",
    "participants",
    "jain_index",
    "skipped",
)

EVALUATION_COLUMNS = ("updates", "version", "round", "elapsed", "metrics")

TABLES = f"""
CREATE TABLE header (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE details (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE events (first_seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, rows BLOB NOT NULL);
CREATE TABLE rounds ({", ".join(ROUND_COLUMNS)}, PRIMARY KEY (round));
CREATE TABLE evaluations (updates INTEGER PRIMARY KEY, version INTEGER, round INTEGER, elapsed REAL, metrics TEXT);
CREATE TABLE checkpoints (seq INTEGER PRIMARY KEY, state TEXT NOT NULL, state_crc INTEGER, arrays BLOB NOT NULL);
CREATE TABLE payloads (ticket INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE released (ticket INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE messages (ticket INTEGER PRIMARY KEY, crc INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE arrays
    (id INTEGER PRIMARY KEY, dtype TEXT, shape TEXT, bytes INTEGER, sum INTEGER, file TEXT, place INTEGER);
CREATE TABLE chunks (array INTEGER, part INTEGER, bytes BLOB NOT NULL, PRIMARY KEY (array, part));
CREATE TABLE checkpoint_arrays (name TEXT, position INTEGER, array INTEGER NOT NULL, PRIMARY KEY (name, position));
CREATE TABLE sent_arrays (ticket INTEGER PRIMARY KEY, kind TEXT NOT NULL, array INTEGER NOT NULL);
CREATE TABLE released_arrays (ticket INTEGER PRIMARY KEY, array INTEGER NOT NULL);
"""

ADDED_COLUMNS = {"rounds": ("skipped DEFAULT 0",)}
"""Columns that tables of earlier versions lack, each the last of its table."""
