"""The simulator's event loop, compiled, for strategies that decide by staleness alone (`strategies/arrival_rule.py`).

It does what `sim/simulation.py`, `core/server.py` and `engine/execution.py` do together for one arrival after another:
take the earliest off the heap, train it, write its report, merge it, draw the next client and send it off. Those three
are its readable twin: the same draws, the same sums in the same order, the same bytes of journal. What happens less
often is left to the caller: `run_arrivals` answers with why it stopped, and goes on from there when it is called again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asyncfed.kernels.client_tables import NOBODY, client_at, entry_of, move_client, put_at
from asyncfed.kernels.compiled import compiled
from asyncfed.kernels.duration_draws import draw
from asyncfed.kernels.event_rows import LONGEST_ROW, put_row
from asyncfed.kernels.keyed_words import GOLDEN, TICKET_STEP, below, draw_key, keyed_unit, mix64
from asyncfed.kernels.merging import add_step, mix, move_slot
from asyncfed.kernels.population_rows import count_reached
from asyncfed.kernels.sgd_loops import make_room, train_client

Array = NDArray[Any]

PAUSED, MUST_STEP, ROOM_IS_FULL, NEEDS_TRAINING, NEEDS_DETAIL, NEEDS_WEIGHTS, NEEDS_ROWS, MEAN_IS_DUE = range(8)
HELD_ARE_DUE, MERGE_IS_DONE, BAD_TIMING, NEEDS_TABLES = range(8, 12)
"""Why the loop stopped: see `sim/compiled_loop.py`, which does what each of them asks for."""

ARRIVE, MERGED, SETTLED, SEND = range(4)
"""Where in the handling of an arrival the loop is: before it, model moved, merge complete, next ticket to go out."""

ADD, MIX, LATEST, HOLD, COHORT = range(5)
"""What becomes of an arrival: see `strategies/arrival_rule.py`. Held ones are merged by the caller."""

DISPATCHED, REPORTED, MERGE, LOST = 0, 1, 2, 4
"""Kinds of events, as in `store/schema.py`."""

_whole, _real, _word = np.int64, np.float64, np.uint64
STATE = np.dtype(
    [
        *[(name, _whole) for name in ("phase", "slot", "heap", "free", "idle", "packed", "seq")],
        *[(name, _whole) for name in ("version", "updates", "most_updates", "in_flight", "tickets")],
        *[(name, _whole) for name in ("next_ticket", "inputs", "rule", "merged_this_round", "round_size")],
        *[(name, _whole) for name in ("held", "hold", "evaluate_every", "ends_round", "rows", "merges_left")],
        *[(name, _whole) for name in ("work", "work_detail", "merge_detail", "last_merge_detail", "model_bytes")],
        *[(name, _whole) for name in ("bytes_down", "bytes_up", "lost", "staleness_sum", "staleness_max")],
        *[(name, _whole) for name in ("merged", "merges", "squares", "participants", "may_lose")],
        *[(name, _whole) for name in ("compute_shape", "download_shape", "upload_shape", "slowness_shape")],
        ("least_rows", _whole),
        *[(name, _real) for name in ("now", "time_limit", "shortest", "longest", "energy", "share")],
        *[(name, _real) for name in ("round_shortest", "round_longest", "timeout", "seconds_per_row")],
        *[(name, _real) for name in ("compute_a", "compute_b", "download_a", "download_b", "upload_a", "upload_b")],
        *[(name, _real) for name in ("slowness_a", "slowness_b")],
        *[(name, _word) for name in ("draws", "train", "compute", "download", "upload", "dropout")],
        *[(name, _word) for name in ("slowness", "device", "rows_key")],
    ],
    align=True,
)
"""The numbers of a run between two arrivals. A `timeout` or `seconds_per_row` below 0 means that there is none."""

SLOT = np.dtype(
    [
        *[(name, _whole) for name in ("ticket", "client", "version", "work", "is_lost", "is_trained")],
        *[(name, _real) for name in ("arrives", "duration", "energy", "free_at", "weight")],
    ],
    align=True,
)
"""A ticket that is out, or held. Its vectors are the rows of the same number in `starts` and `models`."""


@compiled
def _is_earlier(slots: Array, first: int, second: int) -> bool:
    a, b = slots[first], slots[second]
    return bool(a.arrives < b.arrives or (a.arrives == b.arrives and a.ticket < b.ticket))


@compiled
def push(heap: Array, size: int, slots: Array, slot: int) -> None:
    """Put a slot on a heap of so many; the caller counts."""
    at = size
    while at > 0:
        above = (at - 1) // 2
        if not _is_earlier(slots, slot, heap[above]):
            break
        heap[at] = heap[above]
        at = above
    heap[at] = slot


@compiled
def pop(heap: Array, size: int, slots: Array) -> int:
    """Take the earliest slot off a heap of so many; the caller counts."""
    first, last = heap[0], heap[size - 1]
    size -= 1
    at = 0
    while 2 * at + 1 < size:
        below_it = 2 * at + 1
        if below_it + 1 < size and _is_earlier(slots, heap[below_it + 1], heap[below_it]):
            below_it += 1
        if not _is_earlier(slots, heap[below_it], last):
            break
        heap[at] = heap[below_it]
        at = below_it
    heap[at] = last
    return int(first)


@compiled
def _count_merge(s: Any, client: int, staleness: int, clients: Array, first_merged: Array) -> None:
    s.merged += 1
    s.staleness_sum += staleness
    if staleness > s.staleness_max:
        s.staleness_max = staleness
    entry = clients[entry_of(clients, client)]
    before = entry.merges
    if before == 0:
        first_merged[s.participants] = client
        s.participants += 1
    entry.merges = before + 1
    s.merges += 1
    s.squares += 2 * before + 1


@compiled
def merge_held(
    state: Array,
    slots: Array,
    held: Array,
    free: Array,
    starts: Array,
    models: Array,
    params: Array,
    clients: Array,
    first_merged: Array,
    weights: Array,
    keep: float,
    of_models: bool,
) -> None:
    """Merge what is held into `params`, in the order of arrival, as `rules.vectors.Vectors.merge` does; free its slots.

    The version before the merge is the state's; so is the number of updates, which the caller has yet to count.
    """
    s = state[0]
    for i in range(s.held):
        ticket = slots[held[i]]
        _count_merge(s, ticket.client, s.version - ticket.version, clients, first_merged)
    for i in range(s.held):
        slot = held[i]
        if of_models:
            mix(params, keep, models[slot], weights[i], params)
        elif keep == 1.0:
            add_step(params, models[slot], starts[slot], weights[i], params)
        else:
            mix(params, keep, models[slot] - starts[slot], weights[i], params)
        keep = 1.0
        free[s.free] = slot
        s.free += 1
    s.held = 0


@compiled
def _draw_clients(s: Any, count: int, clients: Array, moved: Array, drawn: Array) -> int:
    """Draw so many idle clients, or all there are, as `strategies.samplers.UniformIdle` does; answers with how many.

    The draws are keyed by the number of inputs. `moved` is an empty table, before and afterwards.
    """
    word = s.draws + np.uint64(s.inputs) * TICKET_STEP
    count = min(count, s.idle)
    if count == 1:  # the rule: nothing has moved yet
        drawn[0] = client_at(clients, below(mix64(word + GOLDEN), s.idle))
        return count
    for i in range(count):
        word += GOLDEN
        j = i + below(mix64(word), s.idle - i)
        drawn[i] = client_at(clients, client_at(moved, j))
        put_at(moved, j, client_at(moved, i))
    for slot in range(moved.shape[0] - 1):
        moved[slot].key = NOBODY
    moved[-1].key = 0
    return count


@compiled
def _class_of(s: Any, client: int, first_units: Array, first_clients: Array) -> int:
    """The client's class of devices: `delays.devices.ClassBounds.class_of`."""
    found, count = 0, first_units.shape[0]
    if count > 0:
        own = keyed_unit(s.device, client, 0)
        while found < count and (
            first_units[found] < own or (first_units[found] == own and first_clients[found] <= client)
        ):
            found += 1
    return found


@compiled
def _rows_of(s: Any, client: int, examples: Array, row_units: Array) -> int:
    """How many rows the client has: as listed, or as its own number says (`kernels/population_rows.py`)."""
    if examples.shape[0] > 0:
        return int(examples[client])
    return int(s.least_rows) + count_reached(row_units, keyed_unit(s.rows_key, client, 0))


@compiled
def _set_times(s: Any, ticket: Any, devices: tuple[Array, ...], examples: Array, row_units: Array) -> bool:
    """When the ticket arrives or is given up, and what it costs; False if its times are no times."""
    client, number = ticket.client, ticket.ticket
    class_slowness, class_watts, comes_back, first_units, first_clients = devices
    device = _class_of(s, client, first_units, first_clients)
    compute, download, upload, slowness = s.compute_a, s.download_a, s.upload_a, s.slowness_a
    if s.compute_shape != 0:
        compute = draw(s.compute_shape, s.compute_a, s.compute_b, keyed_unit(s.compute, client, number))
    if s.slowness_shape != 0:
        slowness = draw(s.slowness_shape, s.slowness_a, s.slowness_b, keyed_unit(s.slowness, client, 0))
    compute *= slowness * class_slowness[device]
    if s.seconds_per_row >= 0.0:
        compute *= s.seconds_per_row * _rows_of(s, client, examples, row_units)
    if s.download_shape != 0:
        download = draw(s.download_shape, s.download_a, s.download_b, keyed_unit(s.download, client, number))
    if s.upload_shape != 0:
        upload = draw(s.upload_shape, s.upload_a, s.upload_b, keyed_unit(s.upload, client, number))
    if not (0.0 <= compute < np.inf and 0.0 <= download < np.inf and 0.0 <= upload < np.inf):
        return False
    ticket.energy = class_watts[device] * compute
    ticket.is_lost = 0
    if s.may_lose != 0 and keyed_unit(s.dropout, client, number) < 1.0 - comes_back[device]:
        ticket.is_lost = 1
        ticket.duration = s.timeout if s.timeout >= 0.0 else download + compute + upload
        ticket.arrives = s.now + ticket.duration
        ticket.free_at = 0.0
        return True
    begin = s.now + download
    done = begin + compute
    ticket.free_at = done
    ticket.duration = download + (done - begin) + upload
    ticket.arrives = done + upload
    return True


@compiled
def run_arrivals(
    state: Array,
    most: int,
    slots: Array,
    heap: Array,
    free: Array,
    held: Array,
    starts: Array,
    models: Array,
    params: Array,
    works: Array,
    work: Array,
    clients: Array,
    moved: Array,
    drawn: Array,
    devices: tuple[Array, ...],
    examples: Array,
    row_units: Array,
    first_merged: Array,
    weights: Array,
    latest: Array,
    out: Array,
    trains: bool,
    x: Array,
    y: Array,
    offsets: Array,
    most_rows: int,
    model: tuple[Any, ...],
) -> tuple[int, int]:
    """Handle up to `most` arrivals; answers with why it stopped, and how many it handled.

    Args:
        state: one `STATE`.
        most: arrivals, 0 or more.
        slots: `SLOT` of each ticket.
        heap: slots by time of arrival, `state.heap` of them.
        free: slots that are free, `state.free` of them, the next to be used last.
        held: slots that wait for a merge of several, `state.held` of them.
        starts, models: where each ticket's training begins, and what it arrives at.
        params: the server's model, changed in place.
        works, work: the numbers of each ticket's work, and those of the next ones.
        clients: the table of `kernels/client_tables.py`; the first `state.idle` places are those of idle clients.
        moved, drawn: an empty table with room for all tickets, and room for as many clients as tickets.
        devices: of each class slowness, watts and the share of tickets that are not lost; then the number and the
            client that come first in each class but the first.
        examples: rows of each client; empty where `row_units` and the state say how many a client has.
        row_units: one more row for each of these numbers that the client's own reaches, in order.
        first_merged: clients in the order of their first merge; as long as the table has room for entries.
        weights: what an update counts, by staleness.
        latest: clients' latest models, `state.rows` of them.
        out: the journal's bytes, `state.packed` of them.
        trains: whether tickets are trained here, on `x`, `y` and `offsets` with the linear `model`.
        most_rows: rows of the largest client.
    """
    s = state[0]
    number = np.empty(1, np.float64)
    room = make_room(x, most_rows, params.shape[0], model[3])
    nowhere, no_shift = np.empty(0, np.float64), np.empty(0, x.dtype)
    handled = 0
    while True:
        if s.phase == ARRIVE:
            if handled >= most:
                return PAUSED, handled
            if s.packed + (4 + s.tickets) * LONGEST_ROW > out.shape[0]:
                return ROOM_IS_FULL, handled
            if clients[-1].key + 4 * (1 + s.tickets) > first_merged.shape[0]:
                return NEEDS_TABLES, handled
            slot = heap[0]
            ticket = slots[slot]
            if ticket.arrives > s.time_limit:
                return MUST_STEP, handled
            client, staleness = ticket.client, s.version - ticket.version
            if ticket.is_lost == 0:
                if not (ticket.arrives < np.inf and ticket.duration < np.inf):
                    return MUST_STEP, handled
                if s.rule < HOLD:
                    ends_round = s.merged_this_round + 1 >= s.round_size
                    if (s.last_merge_detail if ends_round else s.merge_detail) < 0:
                        s.ends_round = ends_round
                        return NEEDS_DETAIL, handled
                    if s.rule == LATEST and s.rows == latest.shape[0] and clients[entry_of(clients, client)].row < 0:
                        return NEEDS_ROWS, handled
                if staleness >= weights.shape[0]:
                    return NEEDS_WEIGHTS, handled
                if ticket.is_trained == 0:
                    if not trains:
                        return NEEDS_TRAINING, handled
                    key = draw_key(s.train, client, ticket.ticket)
                    models[slot] = starts[slot]
                    loss, l2, penalize_bias, fit_bias, width = model
                    train_client(
                        x, y, offsets, client, models[slot], nowhere, no_shift, key, works[slot],
                        loss, l2, penalize_bias, fit_bias, width, room,
                    )  # fmt: skip
                    ticket.is_trained = 1
            pop(heap, s.heap, slots)
            s.heap -= 1
            handled += 1
            s.now = ticket.arrives
            s.inputs += 1
            s.in_flight -= 1
            move_client(clients, client, s.idle)
            s.idle += 1
            kind = REPORTED if ticket.is_lost == 0 else LOST
            s.packed = put_row(
                out, s.packed, number, s.seq, s.now, kind, ticket.ticket, client, s.version, True,
                ticket.duration, ticket.energy, -1,
            )  # fmt: skip
            s.seq += 1
            s.energy += ticket.energy
            s.phase = SEND
            if ticket.is_lost != 0:
                s.lost += 1
                free[s.free] = slot
                s.free += 1
                if s.rule == COHORT and s.in_flight > 0:
                    s.phase = ARRIVE
                elif s.rule == COHORT and s.held > 0:
                    return HELD_ARE_DUE, handled
            else:
                s.bytes_up += s.model_bytes
                s.shortest, s.longest = min(s.shortest, ticket.duration), max(s.longest, ticket.duration)
                s.round_shortest = min(s.round_shortest, ticket.duration)
                s.round_longest = max(s.round_longest, ticket.duration)
                weight = weights[staleness]
                if s.rule >= HOLD:
                    ticket.weight = weight if s.rule == HOLD else _rows_of(s, client, examples, row_units)
                    held[s.held] = slot
                    s.held += 1
                    if (s.held >= s.hold) if s.rule == HOLD else (s.in_flight == 0):
                        return HELD_ARE_DUE, handled
                    if s.rule == COHORT:
                        s.phase = ARRIVE
                else:
                    s.slot, s.phase = slot, MERGED
                    s.version += 1
                    s.updates += 1
                    s.merged_this_round += 1
                    s.ends_round = s.merged_this_round >= s.round_size
                    detail = s.last_merge_detail if s.ends_round else s.merge_detail
                    keep = 1.0 - weight if s.rule == MIX else 1.0 if s.rule == ADD else 0.0
                    s.packed = put_row(
                        out, s.packed, number, s.seq, s.now, MERGE, ticket.ticket, client, s.version, True,
                        weight, keep, detail,
                    )  # fmt: skip
                    s.seq += 1
                    _count_merge(s, client, staleness, clients, first_merged)
                    if s.rule == ADD:
                        add_step(params, models[slot], starts[slot], weight, params)
                    elif s.rule == MIX:
                        mix(params, keep, models[slot], weight, params)
                    else:
                        entry = clients[entry_of(clients, client)]
                        if entry.row < 0:
                            entry.row = s.rows
                            s.rows += 1
                        row = entry.row
                        move_slot(params, latest, row, models[slot], weight, s.share, params)
                        s.merges_left -= 1
        if s.phase == MERGED:
            free[s.free] = s.slot
            s.free += 1
            s.phase = SETTLED
            if s.ends_round:
                s.merged_this_round = 0
            if s.rule == LATEST and s.merges_left < 0:
                return MEAN_IS_DUE, handled
        if s.phase == SETTLED:
            s.phase = SEND
            is_measured = s.evaluate_every > 0 and s.updates % s.evaluate_every == 0
            if s.ends_round or is_measured or s.updates >= s.most_updates:
                return MERGE_IS_DONE, handled
        if s.phase == SEND:
            for i in range(_draw_clients(s, s.tickets - s.in_flight, clients, moved, drawn)):
                client = drawn[i]
                s.idle -= 1
                move_client(clients, client, s.idle)
                s.free -= 1
                slot = free[s.free]
                ticket = slots[slot]
                ticket.ticket, ticket.client, ticket.version, ticket.work = s.next_ticket, client, s.version, s.work
                ticket.is_trained = 0
                if not _set_times(s, ticket, devices, examples, row_units):
                    s.slot = slot
                    return BAD_TIMING, handled
                s.next_ticket += 1
                s.in_flight += 1
                starts[slot] = params
                works[slot] = work
                s.packed = put_row(
                    out, s.packed, number, s.seq, s.now, DISPATCHED, ticket.ticket, client, s.version, False, 0.0, 0.0,
                    s.work_detail,
                )  # fmt: skip
                s.seq += 1
                s.bytes_down += s.model_bytes
                push(heap, s.heap, slots, slot)
                s.heap += 1
            s.phase = ARRIVE
