"""Algorithms that wait for some."""

from dataclasses import replace
from math import floor

from .discounts import s


def fedcompass(run, settings):
    """Groups of clients get so many local steps that they arrive together; a group is merged when all are there, or at
    its latest time. Who comes later waits in a general buffer for the next merge, and works on at once."""
    fewest, most = settings["min_steps"], settings["max_steps"]
    first = {"expected": None, "latest": None, "out": set(), "arrived": []}
    groups, buffer, waiting, speed, steps_of = [first], [], [], {}, {}
    run.work_of = lambda client: replace(run.works[client], steps=steps_of[client])

    def place(client):
        """Join the group in which it can make most steps; else open one whose time suits the others' next."""
        if client not in speed:  # new: its speed is found out alone
            steps_of[client] = most
            return
        v, now = speed[client], run.now
        timed = [g for g in groups if g["expected"] is not None]
        room = [(floor((g["expected"] - now) / v), g) for g in timed]
        room = [(steps, g) for steps, g in room if fewest <= steps <= most]
        if room:
            steps, group = max(room, key=lambda pair: pair[0])
        else:
            fastest = {id(g): min((speed[c] for c in members(g) if c in speed), default=None) for g in timed}
            ahead = [
                floor((g["latest"] + fastest[id(g)] * most - now) / v) for g in timed if fastest[id(g)] is not None
            ]
            steps = max([a for a in ahead if a <= most], default=most)
            steps = max(steps, fewest)
            factor = settings["latest_factor"]
            group = {"expected": now + steps * v, "latest": now + factor * steps * v, "out": set(), "arrived": []}
            groups.append(group)
        steps_of[client] = steps
        group["out"].add(client)

    def members(group):
        return group["out"] | {run.client_of(t) for t in group["arrived"]}

    def merge(group):
        groups.remove(group)
        tickets = sorted(group["arrived"] + buffer)
        buffer.clear()
        if tickets:
            if settings["weighting"] == "samples":
                total = sum(run.clients[c].samples for c in run.here)
                share = {t: run.samples_of(t) / total for t in tickets}
            else:
                share = dict.fromkeys(tickets, 1 / len(run.here))
            step = sum(share[t] * s(settings["discount"], run.tau(t)) * run.delta(t) for t in tickets)
            run.publish(run.x + settings["server_lr"] * step, tickets)
        return sorted((run.client_of(t) for t in group["arrived"]), key=lambda c: (speed[c], c))

    for event in run.events():
        if event.kind == "start":
            for client in run.here:
                first["out"].add(client)
                steps_of[client] = most
            run.predict(run.here, ordered=False)
            continue
        late = []
        if event.kind == "joined":
            waiting.append(event.client)
        elif event.kind in ("lost", "left"):
            for group in groups:
                group["out"].discard(event.client)
            if event.kind == "lost":
                waiting.append(event.client)
        elif event.kind == "arrived":
            client, ticket = event.client, event.ticket
            new, m = event.duration / steps_of[client], settings["speed_momentum"]
            speed[client] = new if client not in speed else (1 - m) * speed[client] + m * new
            group = next((g for g in groups if client in g["out"]), None)
            if group is None:
                buffer.append(ticket)
                waiting.append(client)
            else:
                group["out"].discard(client)
                group["arrived"].append(ticket)
                if group["latest"] is None:
                    group["latest"] = run.now + (settings["latest_factor"] - 1) * event.duration
        elif event.kind == "woken":
            late = [g for g in groups if g["latest"] is not None and abs(g["latest"] - run.now) < 1e-9]
        if event.kind not in ("arrived", "woken"):  # losses, joins and leaves come without a clock: a moment later
            run.predict([])
            continue
        for group in [g for g in groups if not g["out"] or g in late]:
            waiting = merge(group) + waiting
        waiting = [client for client in waiting if client in run.here and client not in run.busy()]
        for client in waiting:
            place(client)
        run.predict(waiting)
        waiting = []
