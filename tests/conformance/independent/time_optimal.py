"""Algorithms with the best possible clock."""

from fractions import Fraction
from math import inf
from statistics import median


def ringmaster(run, settings):
    """Step with a delay below R, ignore the rest; with stops, whoever's delay reaches R begins anew at once."""
    limit = settings["staleness_threshold"]
    for event in run.events():
        if event.kind != "arrived":
            continue
        if run.tau(event.ticket) >= limit:
            run.drop(event.ticket)
            continue
        run.publish(run.x + settings["server_lr"] * run.delta(event.ticket), [event.ticket])
        if settings["stops"]:
            for ticket in [t for t in run.out if run.tau(t) >= limit]:
                run.cancel(ticket)


def rennala(run, settings):
    """All compute at w^k, again and again; the first S changes of it make a step by their mean; the rest is stopped."""
    batch = []
    for event in run.events():
        if event.kind == "start":
            run.predict(run.here, ordered=False)
        elif event.kind == "joined" or (event.kind == "lost" and event.client in run.here):
            run.predict([event.client])
        elif event.kind == "arrived":
            assert run.tau(event.ticket) == 0
            batch.append(event.ticket)
            begin = [event.client]
            if len(batch) == settings["changes_per_step"]:
                run.publish(run.x + settings["server_lr"] * sum(run.delta(t) for t in batch) / len(batch), batch)
                batch = []
                begin += stop_all(run)
            run.predict(begin, ordered=False)


def stop_all(run):
    """Cancel everything that is out; who worked on it."""
    stopped = [run.client_of(ticket) for ticket in run.out]
    for ticket in list(run.out):
        run.cancel(ticket)
    return stopped


def malenia(run, settings):
    """Until the harmonic mean of the counts B_i exceeds S/n; then w += (1/n) sum_i (1/B_i) sum_j D_ij.

    All begin anew with a step. n counts the clients that are here; the changes of one that leaves are dropped.
    """
    batches, most = {}, settings["most_changes"] or inf
    for event in run.events():
        begin = []
        if event.kind == "start":
            begin = list(run.here)
        elif event.kind == "arrived":
            batches.setdefault(event.client, []).append(event.ticket)
            begin = [event.client] if len(batches[event.client]) < most else []  # who has sent so many rests
        elif event.kind == "left":
            for ticket in batches.pop(event.client, []):
                run.drop(ticket)
        elif event.kind in ("joined", "lost"):
            begin = [event.client]
        n, enough = len(run.here), False
        if n and set(batches) == run.here:
            harmonic = 1 / (sum(Fraction(1, len(b)) for b in batches.values()) / n)
            rested = all(len(b) >= most for b in batches.values())
            enough = rested or harmonic > Fraction(settings["changes_per_step"], n)
        if enough:
            step = sum(sum(run.delta(t) for t in b) / len(b) for b in batches.values()) / n
            run.publish(run.x + settings["server_lr"] * step, [t for batch in batches.values() for t in batch])
            batches = {}
            stop_all(run)
            begin = list(run.here)
        run.predict(begin, ordered=False)


def ringleader(run, settings):
    """Phase 1 collects until every client has a batch, without a step; phase 2 makes n steps, one per client.

    w += (1/n) sum_i mean(G_i); a batch has one point; who has had its step computes for the next table.
    """
    table, waiting, to_step, next_base, disturbed, resting = {}, {}, set(), {}, False, set()
    most = settings["most_changes"] or inf
    run.base_for = lambda client: next_base.get(client, run.version)

    def first_step(client):
        """With the whole table; it is this client's. Who rested goes on at its model, for its own step."""
        nonlocal table, waiting, to_step
        table, waiting, to_step = waiting, {}, set(run.here) - {client}
        step([t for batch in table.values() for t in batch])
        next_base.pop(client, None)
        run.predict([client, *(resting - {client})], ordered=False)
        resting.clear()

    def step(tickets):
        change = sum(sum(run.delta(t) for t in batch) / len(batch) for batch in table.values()) / len(table)
        server_lr = 1 / len(table) if settings["server_lr"] is None else settings["server_lr"]
        run.publish(run.x + server_lr * change, tickets)
        oldest = min(run.tickets[t].version for batch in table.values() for t in batch)
        if not disturbed and run.version - 1 - oldest > 2 * len(table) - 2:
            run.broken.append(f"version {run.version} was made with a change of version {oldest}")

    for event in run.events():
        disturbed = disturbed or event.kind in ("lost", "joined", "left")
        if event.kind == "start":
            run.predict(run.here, ordered=False)
        elif event.kind == "lost":
            next_base.pop(event.client, None)
            if event.client in waiting:
                next_base[event.client] = run.tickets[waiting[event.client][0]].version
            run.predict([event.client])
        elif event.kind == "joined":
            next_base.pop(event.client, None)
            run.predict([event.client])
        elif event.kind == "left":
            to_step.discard(event.client)
            resting.discard(event.client)
            for ticket in waiting.pop(event.client, []):
                run.drop(ticket)
            if not to_step and run.here and set(waiting) == run.here:  # it was the last one that phase 1 waited for
                client = run.client_of(max(ticket for batch in waiting.values() for ticket in batch))
                for ticket in [t for t in run.out if run.client_of(t) == client]:
                    run.cancel(ticket)
                first_step(client)
        elif event.kind == "arrived":
            client, base = event.client, run.tickets[event.ticket].version
            run.predict([client])
            if client in to_step:
                same = run.tickets[table[client][0]].version == base
                table[client] = [*table[client], event.ticket] if same else [event.ticket]
                to_step.remove(client)
                step([event.ticket])
                next_base.pop(client, None)
                continue
            waiting.setdefault(client, []).append(event.ticket)
            if not to_step and set(waiting) == run.here:
                first_step(client)
                continue
            next_base[client] = base
            if len(waiting[client]) >= most:
                resting.add(client)
                run.predict([])


def mindflayer(run, settings):
    """Client i makes B_i trials at w^k, each cut off at t_i; w += (1/B) sum of the finished, B = sum p_i B_i."""

    def of(value, client):
        return value[min(client, len(value) - 1)] if isinstance(value, list | tuple) else value

    left, held, expected, made, finished, times, cut = {}, {}, {}, {}, {}, {}, {}

    def cut_off(client):
        if settings["cut_off"] is not None:
            return of(settings["cut_off"], client)
        known = times.get(client, [])
        return inf if len(known) < settings["warm_up"] else settings["slack"] * median(known[: settings["warm_up"]])

    def begin_step():
        held.clear()
        for client in run.here:
            left[client], held[client] = of(settings["trials"], client), []
            p = of(settings["finish_probability"], client)
            if p is None:
                p = (1 + finished.get(client, 0)) / (1 + made.get(client, 0))
            expected[client] = p * left[client]
        return list(run.here)

    for event in run.events():
        begin, client = [], event.client
        if event.kind == "start":
            begin = begin_step()
        elif event.kind == "lost":
            made[client] = made.get(client, 0) + 1
            left[client] -= 1
            begin = [client] if left[client] else []
        elif event.kind == "left":
            for ticket in held.pop(client, []):
                run.drop(ticket)
            left.pop(client, None)
        elif event.kind == "arrived":
            times.setdefault(client, []).append(event.duration)
            cut[client] = 0
            finished[client], made[client] = finished.get(client, 0) + 1, made.get(client, 0) + 1
            held[client].append(event.ticket)
            left[client] -= 1
            begin = [client] if left[client] else []
        elif event.kind == "woken" and event.number in run.out:
            client = run.client_of(event.number)
            if run.now >= run.out[event.number].sent_at + cut_off(client) * (1 - 1e-12):
                run.cancel(event.number)
                cut[client] = cut.get(client, 0) + 1
                if cut[client] == settings["warm_up"]:
                    times[client], cut[client] = [], 0
                made[client] = made.get(client, 0) + 1
                left[client] -= 1
                begin = [client] if left[client] else []
        trying = [c for c in left if left[c] and c in run.here]
        if event.kind != "start" and not trying:
            tickets = [t for batch in held.values() for t in batch]
            if tickets:
                step = sum(run.delta(t) for t in tickets) / sum(expected[c] for c in held)
                run.publish(run.x + settings["server_lr"] * step, tickets)
            begin = begin_step()
        run.predict(begin, ordered=False)
