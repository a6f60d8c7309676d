"""Algorithms that wait for some."""

from dataclasses import replace
from math import floor, inf

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


def over_selection(run, settings):
    """More clients are asked than needed; w = sum n_i w_i / sum n_i over the first K, or those there at the deadline.

    What is still out is cancelled. With too few at the deadline, the round goes on until there are enough, or ends with
    what arrived dropped.
    """
    needed, fewest, deadline = settings["cohort_size"], settings["fewest_reports"], settings.get("deadline", inf)
    reports, began, overdue = [], 0.0, False

    def close(merge):
        nonlocal reports, overdue
        if merge:
            counts = [run.samples_of(t) if settings["weighting"] == "samples" else 1 for t in reports]
            x = sum(n * run.result(t) for n, t in zip(counts, reports, strict=True)) / sum(counts)
            run.publish(x, reports)
        else:
            for ticket in reports:
                run.drop(ticket)
        for ticket in list(run.out):
            run.cancel(ticket)
        reports, overdue = [], False

    for event in run.events():
        if event.kind == "arrived":
            reports.append(event.ticket)
            if len(reports) == needed or (len(reports) >= fewest and (overdue or not run.out)):
                close(merge=True)
        elif event.kind == "woken" and abs(run.now - began - deadline) < 1e-9:
            if len(reports) >= fewest:
                close(merge=True)
            elif settings["when_short"] == "abandon":
                close(merge=False)
            else:
                overdue = True
        elif event.kind in ("lost", "left") and not run.out and len(reports) >= fewest:
            close(merge=True)
        if event.sent and not run.out and not reports:
            began = run.now


def periodic(run, settings):
    """At each multiple of T at which k > 0 reports have arrived: w += (eta / k) sum s(tau_i) (w_i - w_base,i).

    T left out is the mean duration of the first reports, as many as there are tickets, which are merged together.
    """
    period, origin, buffer, over, durations = settings.get("period"), 0.0, [], 0, []
    for event in run.events():
        if event.kind == "arrived":
            buffer.append(event.ticket)
            durations.append(event.duration)
        # If nobody is at work, there is nothing to wait for. Losses and leaves come without a clock: a moment later.
        nobody = not run.out and event.kind in ("arrived", "woken")
        first = period is None and durations and (len(durations) == settings["concurrency"] or nobody)
        if first:
            period, origin = sum(durations) / len(durations), run.now
        due = event.kind == "woken" and period is not None and run.now - origin >= (over + 1) * period * (1 - 1e-12)
        if buffer and (first or due):
            step = sum(s(settings["discount"], run.tau(t)) * run.delta(t) for t in buffer) / len(buffer)
            run.publish(run.x + settings["server_lr"] * step, buffer)
            buffer, over = [], floor((run.now - origin) / period * (1 + 1e-12))


def fedat(run, settings):
    """Tier m is synchronous: w_m = sum n_i w_i / sum n_i over its cohort; then w = sum_m (T_(M+1-m) / T) w_m.

    1/M each while any T_m is 0. Tiers, fastest first, follow from the first durations; a first cohort for all tiers
    together makes them, and is a round of each. Who has not reported may be drawn by any tier.
    """
    m_tiers, size = settings["tiers"], settings["cohort_size"]
    first_time, made, start = {}, False, run.x
    out, waiting = [set()], [[]]
    models, rounds = [start] * m_tiers, [0] * m_tiers

    def tier_of(also=()):
        order = sorted((c for c in {*run.here, *also} if c in first_time), key=lambda c: (first_time[c], c))
        share, larger = divmod(len(order), m_tiers)
        sizes = [share + (m < larger) for m in range(m_tiers)]
        return {c: m for m in range(m_tiers) for c in order[sum(sizes[:m]) : sum(sizes[: m + 1])]}

    def close(m, tickets):
        counts = [run.samples_of(t) if settings["weighting"] == "samples" else 1 for t in tickets]
        models[m] = sum(n * run.result(t) for n, t in zip(counts, tickets, strict=True)) / sum(counts)
        rounds[m] += 1
        shares = [1 / m_tiers] * m_tiers if 0 in rounds else [t / sum(rounds) for t in reversed(rounds)]
        run.publish(sum(share * w for share, w in zip(shares, models, strict=True)), tickets)

    for event in run.events():
        if event.kind == "arrived":
            first_time.setdefault(event.client, event.duration)
            place = next(m for m in range(len(out)) if event.ticket in out[m])
            waiting[place].append(event.ticket)
        for gone in (event.ticket, *event.gone):
            for tickets in out:
                tickets.discard(gone)
        if not made and waiting[0] and not out[0]:
            made, tickets = True, waiting[0]
            tiers = tier_of({run.client_of(t) for t in tickets})  # who reported and left is still in the first round
            out, waiting = [set() for _ in range(m_tiers)], [[] for _ in range(m_tiers)]
            for m in range(m_tiers):
                mine = [t for t in tickets if tiers.get(run.client_of(t)) == m]
                if mine:
                    close(m, mine)
        for m in range(len(out)) if made else ():
            if waiting[m] and not out[m]:
                close(m, waiting[m])
                waiting[m] = []
        sent, idle, tiers = list(event.sent), run.idle(), tier_of()
        for m in range(len(out)):
            if out[m] or waiting[m]:
                continue
            may = {c for c in idle if not made or tiers.get(c, m) == m}
            count = min(size if made else size * m_tiers, len(may))
            mine, sent = sent[:count], sent[count:]
            out[m] = {ticket for ticket, _ in mine}
            idle -= {client for _, client in mine}
            if len(mine) < count or not {client for _, client in mine} <= may:
                run.broken.append(f"{event.kind} {event.ticket}: tier {m} drew {mine}, it may draw {count} of {may}")
        if sent:
            run.broken.append(f"{event.kind} {event.ticket}: {sent} were drawn for no tier")


def safa(run, settings):
    """Everybody is at work. A round ends with Q arrivals of clients that were not picked in the last one; or with Q of
    any, if nobody is worth waiting for; or when nobody is out; or at the deadline.

    Picked, Q in all: those not picked in the last round first, then the others, by arrival. c_k = w_k for the picked,
    c_k = w for the deprecated; w = sum n_k / n c_k over all clients; then c_k = w_k for who was not picked. Tickets
    that are now more than `lag_tolerance` versions old are deprecated: they begin anew.
    """
    deadline = settings.get("deadline", inf)
    cache, last_picked, deprecated, arrived = dict.fromkeys(run.here, run.x), set(), set(), []
    began, overdue, lost, joined = 0.0, False, [], set()
    for event in run.events():
        if event.kind == "start":
            run.predict(run.here, ordered=False)
            continue
        if event.kind == "arrived":
            arrived.append(event.ticket)
        elif event.kind == "lost":
            lost.append(event.client)
        elif event.kind == "woken" and abs(run.now - began - deadline) < 1e-9:
            overdue = True
        elif event.kind == "left":
            for ticket in [t for t in arrived if run.client_of(t) == event.client]:
                run.drop(ticket)
                arrived.remove(ticket)
            cache.pop(event.client, None)
            joined.discard(event.client)
            lost = [c for c in lost if c != event.client]
        begin = []
        if event.kind == "joined":
            joined.add(event.client)
            begin = [event.client]
        if not arrived and not run.out:
            begin, lost, overdue, began = begin + lost, [], False, run.now  # the round begins anew
        fresh = [t for t in arrived if run.client_of(t) not in last_picked]
        worth = [t for t in run.out if run.tau(t) == 0 and run.client_of(t) not in last_picked | deprecated | joined]
        quota = min(settings["cohort_size"], len(run.here))
        over = len(fresh) >= quota or (len(arrived) >= quota and not worth) or not run.out or overdue
        if not arrived or not over:
            run.predict(begin, ordered=False)
            continue
        picked = [*fresh, *(t for t in arrived if t not in fresh)][:quota]
        cache |= dict.fromkeys((deprecated | joined) & run.here, run.x)
        joined = set()
        cache |= {run.client_of(t): run.result(t) for t in picked}
        total = sum(run.clients[c].samples for c in cache)
        run.publish(sum(run.clients[c].samples / total * w for c, w in cache.items()), arrived)
        cache |= {run.client_of(t): run.result(t) for t in arrived if t not in picked}
        last_picked = {run.client_of(t) for t in picked}
        old = [t for t in run.out if run.tau(t) > settings["lag_tolerance"]]
        deprecated = {run.client_of(t) for t in old}
        for ticket in old:
            run.cancel(ticket)
        run.predict([*begin, *(run.client_of(t) for t in arrived), *deprecated, *lost], ordered=False)
        arrived, lost, overdue, began = [], [], False, run.now
