"""A recorded schedule once more, as a live run: the same session that serves real clients, without sockets."""

from typing import NamedTuple

import numpy as np

from asyncfed.core.record import replace
from asyncfed.engine.plan import Plan
from asyncfed.engine.replay import replay
from asyncfed.live.checks import Limits
from asyncfed.live.client_task import work_on
from asyncfed.live.session import CheckpointPolicy, LiveSession
from asyncfed.live.wire import decode, decode_arrays, encode
from asyncfed.store.journal import Journal
from asyncfed.uplinks.client_memory import ClientMemory


class Played(NamedTuple):
    """The model of the live session, and the one that a replay of its journal comes to."""

    params: np.ndarray
    replayed: np.ndarray


def play_live(recording) -> Played:
    """Clients answer in the recorded order, at the recorded times; timers run out when the session says so."""
    world = recording.world
    absent = tuple(sorted(recording.plan.absent_at_start()))
    plan: Plan = replace(recording.plan, churn=(), absent=absent)
    journal = Journal.create(None, {"num_clients": world.num_clients})
    limits = Limits(ticket_seconds=1e12)
    session = LiveSession(world.problem, plan, journal, name="live", limits=limits, checkpoints=CheckpointPolicy())
    memories = [ClientMemory() for _ in world.clients]
    held = {}
    session.start()

    def take_out(now):
        for dispatch in session.commit(now):
            held[dispatch.ticket] = through_the_wire(*session.make_task(dispatch))

    take_out(0.0)
    for event in recording.events[1:]:
        now = event.time
        if event.kind == "arrived":
            task, arrays = held.pop(event.ticket)
            shard, first = world.problem.shard(event.client), lambda c=event.client: session.first_model(c)
            result, sent = work_on(shard, task, arrays, memories[event.client], lambda: 0.0, first_model=first)
            session.accept(event.client, *through_the_wire(result, sent), now)
        elif event.kind == "lost":
            session.lose(event.ticket, "lost", now)
        elif event.kind == "joined":
            session.join(event.client, now)
        elif event.kind == "left":
            session.leave(event.client, "left", now)
        else:
            session.expire(now + 1e-12 * now)  # a timer's moment is the sum of two times: let it be over
        take_out(now)
    params = session.state.params
    again = Journal.create(None, {})
    for _ in replay(world.problem, plan, journal.event_rows(), again):
        pass
    return Played(params, again.checkpoint()[1]["params"])


def through_the_wire(message, arrays):
    arrived, body = decode(b"".join(encode(message, arrays)), 10**6)
    return arrived, decode_arrays(arrived, body)
