"""Files of runs with bytes flipped or values changed, where the check sums are, made to fit."""

import io
import json
import shutil
import sqlite3
from contextlib import closing
from zlib import crc32

import msgspec
import numpy as np
from tests.fuzzing.values import any_value, with_flipped_bytes, with_one_change

COMMANDS = (
    ["show"], ["show", "--clients"], ["show", "--toml"], ["resume"], ["resume"], ["verify"], ["verify"],
    ["replay", "--strategy", "sync"], ["export", "--table", "events"], ["export", "--table", "rounds"],
    ["export", "--table", "evaluations"], ["export", "--table", "clients"], ["show"], ["resume"], ["verify"],
    ["export", "--table", "events"], ["export", "--table", "clients"], ["report"],
)  # fmt: skip


def damaged_run(rng, folder, run_files):
    """The arguments of a command that reads a run's file which was just damaged."""
    file = folder / f"damaged-{rng.getrandbits(64):x}.sqlite"  # one that failed may still be open
    shutil.copy(rng.choice(run_files), file)
    damage = rng.choice(DAMAGES)
    if damage is flip_bytes:
        flip_bytes(rng, file)
    else:
        with closing(sqlite3.connect(file)) as connection, connection:
            damage(rng, connection)
    command, *options = rng.choice(COMMANDS)
    if command == "export":
        options += [str(folder / "table.csv")]
    if command == "report":
        options += ["--out", str(folder / "page.html")]
    return [command, str(file), *(options if command != "export" else [options[-1], *options[:-1]])]


def to_json(value):
    """As JSON, or something nested as deeply where the library that writes JSON gives up."""
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 3000 + "]" * 3000


def flip_bytes(rng, file):
    file.write_bytes(with_flipped_bytes(rng, file.read_bytes()))


def change_header(rng, connection):
    name, value = rng.choice(connection.execute("SELECT name, value FROM header ORDER BY name").fetchall())
    plain = json.loads(value)
    changed = with_one_change(rng, plain)
    if name == "experiment" and isinstance(changed, dict):  # a longer budget would be a longer run, and no mistake
        changed["budget"] = plain["budget"]
    text = to_json(changed) if rng.random() < 0.9 else rng.choice(("", "{", "nope", "1", "[" * 5000))
    connection.execute("UPDATE header SET value = ? WHERE name = ?", (text, name))


def remove_from_header(rng, connection):
    (name,) = rng.choice(connection.execute("SELECT name FROM header ORDER BY name").fetchall())
    connection.execute("DELETE FROM header WHERE name = ?", (name,))


def change_detail(rng, connection):
    number, text = rng.choice(connection.execute("SELECT id, text FROM details ORDER BY id").fetchall())
    sort = rng.randrange(4)
    if sort == 0:
        value = rng.choice(("", "{", "null", "[]", "1", "[" * 5000, b"\xff\xfe", 7, '"x"', "NaN"))
    elif sort == 1:
        value = to_json(any_value(rng))
    else:
        value = to_json(with_one_change(rng, json.loads(text)))
    connection.execute("UPDATE details SET text = ? WHERE id = ?", (value, number))


def renumber_details(rng, connection):
    connection.execute("UPDATE details SET id = id + ?", (rng.choice((-1000, 1000)),))


def change_event(rng, connection):
    first, count, packed = rng.choice(connection.execute("SELECT * FROM events ORDER BY first_seq").fetchall())
    rows = msgspec.msgpack.decode(b"\xdd" + count.to_bytes(4, "big") + packed)
    for _ in range(rng.randint(1, 3)):
        row = rng.choice(rows)
        place = rng.randrange(len(row))
        value = any_value(rng) if rng.random() < 0.3 else rng.choice((None, 0, 1, 5, -1, 10**6, 2**40, 0.5, "x"))
        row[place] = value if not isinstance(value, int) or abs(value) < 2**63 else 2**62
    if rng.random() < 0.2:
        rng.choice(rows).append(0)
    try:
        packed = msgspec.msgpack.encode(rows)
    except (OverflowError, RecursionError):
        return
    packed = packed[1 if count < 16 else 3 if count < 65536 else 5 :]
    connection.execute("UPDATE events SET rows = ? WHERE first_seq = ?", (packed, first))


def damage_block(rng, connection):
    first, count, packed = rng.choice(connection.execute("SELECT * FROM events ORDER BY first_seq").fetchall())
    sort = rng.randrange(4)
    if sort == 0:
        connection.execute("UPDATE events SET rows = ?", (with_flipped_bytes(rng, packed, 3),))
    elif sort == 1:
        odd = rng.choice((0, -1, count + 1, count - 1, 2**40, 2**31, "x", 0.5))
        connection.execute("UPDATE events SET count = ? WHERE first_seq = ?", (odd, first))
    elif sort == 2:
        odd = rng.choice((-1, first + 1, 2**40))
        connection.execute("UPDATE events SET first_seq = ? WHERE first_seq = ?", (odd, first))
    else:
        connection.execute("UPDATE events SET rows = ? WHERE first_seq = ?", (rng.choice(("text", 3, b"")), first))


def change_table(rng, connection):
    table = rng.choice(("rounds", "evaluations"))
    names = [column[0] for column in connection.execute(f"SELECT * FROM {table}").description]
    name = rng.choice(names)
    value = any_value(rng)
    if name == "metrics":
        rows = connection.execute("SELECT metrics FROM evaluations").fetchall()
        value = with_one_change(rng, json.loads(rng.choice(rows)[0])) if rows else None
        value = to_json(value)
    elif isinstance(value, list | dict) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        value = "junk"
    where = "" if name not in ("round", "updates") and rng.random() < 0.3 else " WHERE rowid = 2"
    try:
        connection.execute(f"UPDATE {table} SET {name} = ?{where}", (value,))
    except sqlite3.IntegrityError:
        return


def change_checkpoint(rng, connection):
    rows = connection.execute("SELECT seq, state, arrays FROM checkpoints").fetchall()
    if not rows:
        return
    seq, state, blob = rows[-1]
    text = to_json(with_one_change(rng, json.loads(state)))
    sort = rng.randrange(5)
    if sort == 0:
        connection.execute("UPDATE checkpoints SET state = ?", (text,))
    elif sort <= 2:
        connection.execute("UPDATE checkpoints SET state = ?, state_crc = ?", (text, crc32(text.encode())))
    elif sort == 3:
        connection.execute("UPDATE checkpoints SET arrays = ?", (with_flipped_bytes(rng, blob, 3),))
    else:
        connection.execute("UPDATE checkpoints SET arrays = ?", (_other_arrays(rng, blob),))
    if rng.random() < 0.1:
        connection.execute("UPDATE checkpoints SET seq = ?", (rng.choice((0, -1, seq + 1, 2**40)),))


def _other_arrays(rng, blob):
    with np.load(io.BytesIO(blob), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    name = rng.choice(sorted(arrays))
    array = arrays.pop(name)
    sort = rng.randrange(6)
    if sort:
        odd = (
            array[:-1],
            array.astype(str),
            array.reshape(1, -1),
            np.full(array.shape, np.nan),
            array[..., None] * 1e9,
        )
        arrays[name] = odd[sort - 1] if array.ndim else np.zeros(3)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def change_schema(rng, connection):
    statements = (
        "PRAGMA user_version = 1", "PRAGMA user_version = 99", "PRAGMA application_id = 7", "DROP TABLE details",
        "DROP TABLE rounds", "DROP TABLE checkpoints", "DELETE FROM checkpoints", "DELETE FROM events",
        "DELETE FROM evaluations", "DELETE FROM rounds", "DELETE FROM details", "DELETE FROM header",
        "ALTER TABLE rounds DROP COLUMN elapsed", "ALTER TABLE evaluations DROP COLUMN metrics",
        "ALTER TABLE events DROP COLUMN rows", "ALTER TABLE evaluations RENAME COLUMN elapsed TO late",
    )  # fmt: skip
    connection.execute(rng.choice(statements))


DAMAGES = (
    flip_bytes, change_header, change_header, remove_from_header, change_detail, change_detail, renumber_details,
    change_event, change_event, damage_block, change_table, change_checkpoint, change_checkpoint, change_schema,
)  # fmt: skip
