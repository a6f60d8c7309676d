"""The table family: a vector of every client, kept at the server."""

from math import inf

from .discounts import s
from .synchronous import cohorts


def ca2fl(run, settings):
    """Flush S: v = h + mean_S(D_i - h_i); w += eta v; then h_i = D_i, h = mean over all n of h_i.

    h and h_i in v are those from before the flush; of a client that is in S twice, the last change is kept. With a
    discount each calibrated change counts s(tau) of itself.
    """
    kept, size, buffer = [0 * run.x for _ in run.clients], settings["buffer_size"], []
    for event in run.events():
        if event.kind == "arrived":
            buffer.append(event.ticket)
        if len(buffer) == size:
            h = sum(kept) / run.num_clients
            step = sum(
                s(settings["discount"], run.tau(t)) * (h + run.delta(t) - kept[run.client_of(t)]) for t in buffer
            )
            run.publish(run.x + settings["server_lr"] * step / size, buffer)
            for t in buffer:
                kept[run.client_of(t)] = run.delta(t)
            buffer = []


def fedvarp(run, settings):
    """v = mean_S(D_i - y_i) + mean over all n of y_j; w += v; then y_i = D_i."""
    kept = [0 * run.x for _ in run.clients]
    for cohort in cohorts(run):
        v = sum(run.delta(t) - kept[run.client_of(t)] for t in cohort) / len(cohort) + sum(kept) / run.num_clients
        run.publish(run.x + v, cohort)
        for t in cohort:
            kept[run.client_of(t)] = run.delta(t)


def mifa(run, settings):
    """h_i = D_i for who reported; w += mean of h_i over all that ever reported."""
    kept = {}
    for cohort in cohorts(run):
        kept |= {run.client_of(t): run.delta(t) for t in cohort}
        run.publish(run.x + sum(kept.values()) / len(kept), cohort)


def ace(run, settings):
    """No step until everybody was asked once and those tickets are back or lost; then one with their changes' mean.

    After that on each arrival h_i = D_i, w += eta h, h the mean of all h_i; ACED leaves out those that were made from a
    model more than T versions old.
    """
    kept, born, held, warm, limit = {}, {}, [], False, settings["rule"].get("max_age", inf)
    unasked = sorted(run.here)

    def ask(count):
        first, unasked[:] = unasked[:count], unasked[count:]
        run.predict(first)

    def put(ticket):
        kept[run.client_of(ticket)], born[run.client_of(ticket)] = run.delta(ticket), run.tickets[ticket].version

    def step(tickets):
        for ticket in tickets:
            put(ticket)
        young = [h for client, h in kept.items() if run.version - born[client] <= limit]
        eta = settings.get("server_lr", 1 / max(1, len(run.here)))
        run.publish(run.x + (eta * sum(young) / len(young) if young else 0), tickets)

    for event in run.events():
        if warm:
            if event.kind == "arrived":
                step([event.ticket])
            continue
        if event.kind == "left" and event.client in unasked:
            unasked.remove(event.client)
        if event.kind == "arrived":
            held.append(event.ticket)
        if unasked:
            ask(settings["concurrency"] - len(run.out))
        elif run.out:
            run.predict([])
        else:
            warm = True
            if held:
                step(held)
