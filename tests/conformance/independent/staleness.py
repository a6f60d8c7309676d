"""Asynchronous rules that count or damp staleness. tau is 0 for an update from the present version."""

from dataclasses import replace
from math import floor, inf, log, sqrt

import numpy as np

from .discounts import s


def async_sgd(run, settings):
    """w += server_lr (w_i - w_base), however stale."""
    for event in run.events():
        if event.kind == "arrived":
            run.publish(run.x + settings["server_lr"] * run.delta(event.ticket), [event.ticket])


def fedasync(run, settings):
    """w = (1 - a) w + a w_i, a = mixing * s(tau); the discount does not compound."""
    for event in run.events():
        if event.kind == "arrived":
            a = settings["mixing"] * s(settings["discount"], run.tau(event.ticket))
            run.publish((1 - a) * run.x + a * run.result(event.ticket), [event.ticket])


def fedbuff(run, settings):
    """Every K arrivals: w += (eta / K) sum s(tau_i) (w_i - w_base,i)."""
    size, buffer = settings["buffer_size"], []
    for event in run.events():
        if event.kind == "arrived":
            buffer.append(event.ticket)
            if len(buffer) == size:
                step = sum(s(settings["discount"], run.tau(t)) * run.delta(t) for t in buffer)
                run.publish(run.x + settings["server_lr"] / size * step, buffer)
                buffer = []


def delay_adaptive(run, settings):
    """w += eta_t (w_i - w_base): eta_t = eta up to tau_C; beyond, eta tau_C / tau, the theorem's limit, or 0.

    After Mishchenko, the worker that reported gets the new model itself.
    """
    limit = settings.get("staleness_threshold", settings["concurrency"])
    for event in run.events():
        if event.kind != "arrived":
            continue
        tau, eta = run.tau(event.ticket), settings["server_lr"]
        if settings["next_client"] == "same" and event.client in run.here:
            run.predict([event.client])
        if tau > limit and settings["beyond"] == "drop":
            run.drop(event.ticket)
            continue
        if tau > limit and settings["beyond"] == "shrink":
            eta *= limit / tau
        elif tau > limit:
            step = sum(run.tickets[event.ticket].work.rates())
            eta = min(eta, 1 / (4 * settings["smoothness"] * tau * step))
        run.publish(run.x + eta * run.delta(event.ticket), [event.ticket])


def dc_asgd(run, settings):
    """w -= eta (g + lam g*g*(w - w_base)); adaptive: lam0 / sqrt(meansq + eps) in place of lam, element by element.

    g is the mean gradient of the pass: the change divided by the sum of its rates.
    """
    rule, meansq = settings["rule"], 0 * run.x
    for event in run.events():
        if event.kind != "arrived":
            continue
        pace = sum(run.tickets[event.ticket].work.rates())
        g, lam = -run.delta(event.ticket) / pace, rule["compensation"]
        if rule["adaptive"]:
            m = rule["mean_square_memory"]
            meansq = m * meansq + (1 - m) * g * g
            lam = rule["adaptive_compensation"] / np.sqrt(meansq + rule["epsilon"])
        step = pace * (g + lam * g * g * (run.x - run.base(event.ticket)))
        run.publish(run.x - settings["server_lr"] * step, [event.ticket])


def fadas(run, settings):
    """AMSGrad on the mean D of a buffer: m, v, vh = max(vh, v); w += eta_t m / (sqrt(vh) + eps).

    eta_t = eta up to a largest staleness of tau_c; beyond, the authors' code eta / tau_max with bias-corrected moments,
    the paper min(eta, 1 / tau_max) without. All moments start at 0.
    """
    rule, size, buffer, flushes = settings["rule"], settings["buffer_size"], [], 0
    m, v, largest = 0 * run.x, 0 * run.x, 0 * run.x
    for event in run.events():
        if event.kind != "arrived":
            continue
        buffer.append(event.ticket)
        if len(buffer) < size:
            continue
        flushes += 1
        mean = sum(run.delta(t) for t in buffer) / size
        m, v = rule["b1"] * m + (1 - rule["b1"]) * mean, rule["b2"] * v + (1 - rule["b2"]) * mean**2
        largest = np.maximum(largest, v)
        stalest, eta, m_hat, v_hat = max(run.tau(t) for t in buffer), rule["lr"], m, largest
        if rule["reading"] == "code":
            m_hat, v_hat = m / (1 - rule["b1"] ** flushes), largest / (1 - rule["b2"] ** flushes)
        if stalest > rule["staleness_threshold"]:
            eta = eta / stalest if rule["reading"] == "code" else min(eta, 1 / stalest)
        run.publish(run.x + eta * m_hat / (np.sqrt(v_hat) + rule["eps"]), buffer)
        buffer = []


def generalized_async_sgd(run, settings):
    """w += eta / (n p_i) (w_i - w_base), p_i the chance that i is drawn among the n clients that are here."""
    weights = settings["sampler"].get("weights")
    for event in run.events():
        if event.kind == "arrived":
            chance = {c: 1.0 if weights is None else weights[c] for c in run.here}
            p = chance[event.client] / sum(chance.values())
            step = settings["server_lr"] / (len(run.here) * p)
            run.publish(run.x + step * run.delta(event.ticket), [event.ticket])


def asyncfeded(run, settings):
    """gamma = |w - w_base| / |D_i|; w += lam / (gamma + eps) D_i; then K_i += floor((gamma_target - gamma) kappa)."""
    steps = {}
    run.work_of = lambda c: replace(run.works[c], steps=steps.get(c, run.works[c].steps))
    for event in run.events():
        if event.kind != "arrived":
            continue
        moved, length = np.linalg.norm(run.x - run.base(event.ticket)), np.linalg.norm(run.delta(event.ticket))
        gamma = moved / length if length else (inf if moved else 0.0)
        run.publish(run.x + settings["server_lr"] / (gamma + settings["eps"]) * run.delta(event.ticket), [event.ticket])
        more = max((settings["gamma_target"] - gamma) * settings["step_gain"], -1e9)
        k = run.tickets[event.ticket].work.steps + floor(more)
        steps[event.client] = min(max(1, k), settings["max_steps"] or inf)


def fedfa(run, settings):
    """The arriving model takes the place of the oldest in a queue of K, which begins as K times w_0; w = its mean."""
    queue = [run.x] * settings["queue_size"]
    for event in run.events():
        if event.kind == "arrived":
            queue = [*queue[1:], run.result(event.ticket)]
            run.publish(sum(queue) / len(queue), [event.ticket])


def port(run, settings):
    """Every K: w += sum p_i D_i, p_i ~ n_i [a (cos(D_i, w - w_base) + 1) / 2 + b S / (tau_i + S)], sum p_i = 1.

    The cosine of a fresh update is 1. A merge that would leave a ticket more than S versions old waits; or such tickets
    are cancelled; or nothing is done about them.
    """
    size, bound, buffer = settings["buffer_size"], settings["staleness_bound"], []

    def factor(ticket):
        d, moved = run.delta(ticket), run.x - run.base(ticket)
        cos = d @ moved / (np.linalg.norm(d) * np.linalg.norm(moved)) if run.tau(ticket) else 1.0
        fresh = bound / (run.tau(ticket) + bound)
        both = settings["similarity_weight"] * (cos + 1) / 2 + settings["staleness_weight"] * fresh
        return run.samples_of(ticket) * both

    for event in run.events():
        if event.kind == "arrived":
            buffer.append(event.ticket)
        late = [t for t in run.out if run.tau(t) + 1 > bound]
        if len(buffer) < size or (late and settings["when_late"] == "wait"):
            continue
        p = {t: factor(t) for t in buffer}
        run.publish(run.x + sum(p[t] * run.delta(t) for t in buffer) / sum(p.values()), buffer)
        buffer = []
        if settings["when_late"] == "restart":
            for ticket in late:
                run.cancel(ticket)


def fedasmu(run, settings):
    """w = (1 - a) w + a w_i, a = mu xi / (1 + mu xi), xi = lam / (sqrt(t) (tau + 1)^sigma) + iota, t from 1."""
    for event in run.events():
        if event.kind == "arrived":
            t, tau = run.version + 1, run.tau(event.ticket)
            xi = settings["scale"] / (sqrt(t) * (tau + 1) ** settings["power"]) + settings["offset"]
            a = settings["mixing"] * xi / (1 + settings["mixing"] * xi)
            run.publish((1 - a) * run.x + a * run.result(event.ticket), [event.ticket])


def asgrad(run, settings):
    """Every b reports: w += mean of their changes; then b workers are assigned w, who queue it if they are busy.

    Pure: those that have just reported. Shuffled: the next of a permutation of all n, drawn anew every n assignments.
    """
    buffer, assigned, steady = [], [], True
    for event in run.events():
        steady = steady and event.kind not in ("joined", "left")
        if event.kind == "arrived":
            buffer.append(event.ticket)
        # If nobody is at work, and nobody can take the place of who left, what there is is merged.
        others = run.here - {run.client_of(t) for t in buffer} if settings["order"] == "pure" else run.here
        nobody = not run.out and event.kind != "lost" and not (event.gone and others)
        together = len(buffer) == settings["wait_for"] or nobody
        if buffer and together:
            step = sum(run.delta(t) for t in buffer) / len(buffer)
            run.publish(run.x + settings["server_lr"] * step, buffer)
            if settings["order"] == "pure" and event.kind == "arrived" and steady:
                run.predict([run.client_of(t) for t in buffer])
            buffer = []
        elif event.kind == "arrived":
            run.predict([])
        assigned += [client for _, client in event.sent]
    cycle = len(run.here)
    if settings["order"] == "shuffled" and steady:
        for begin in range(0, len(assigned) - cycle + 1, cycle):
            if set(assigned[begin : begin + cycle]) != run.here:
                run.broken.append(f"assignments {begin} to {begin + cycle - 1} are no permutation: {assigned}")


def aso_fed(run, settings):
    """Client: s = gradient + lam (w - w_base); w -= r lr (s - s_prev + h); then h = b h + (1 - b) s_prev, s_prev = s.

    Server: w += (n_i / N) (w_i - c_i), c_i the client's last model. r = max(1, log(mean time / unit)). s_prev and h
    change once a pass, s_prev to the mean of s over its steps.
    """
    b, zero = settings["rule"]["balance"], 0 * run.x
    h, before, copy = {}, {}, dict.fromkeys(run.here, run.x)
    known, times, shortest = set(run.here), {}, inf
    run.correction = lambda client: h.get(client, zero) - before.get(client, zero)

    def mean_time(client):
        return sum(times[client]) / len(times[client])

    def work(client):
        if not settings["dynamic_step"] or client not in times:
            return run.works[client]
        factor = max(1.0, log(mean_time(client) / settings.get("delay_unit", shortest)))
        return replace(run.works[client], rate=run.works[client].rate * factor)

    run.work_of = work
    for event in run.events():
        if event.kind == "joined":
            known.add(event.client)
        if event.kind != "arrived":
            continue
        client, ticket = event.client, run.tickets[event.ticket]
        times.setdefault(client, []).append(event.duration)
        shortest = min(shortest, mean_time(client))  # the shortest that any client's mean ever was
        w, total = ticket.base, zero
        for rate in ticket.work.rates():
            s_now = run.clients[client].gradient(w) + ticket.work.proximal * (w - ticket.base)
            w, total = w - rate * (s_now + ticket.correction), total + rate * s_now
        share = run.clients[client].samples / sum(run.clients[c].samples for c in known)
        run.publish(run.x + share * (w - copy.get(client, ticket.base)), [event.ticket])
        copy[client] = w
        h[client] = b * h.get(client, zero) + (1 - b) * before.get(client, zero)
        before[client] = total / sum(ticket.work.rates())


def staleness_aware(run, settings):
    """Every c arrivals: w += (1/c) sum (w_i - w_base,i) / max(1, tau_i)."""
    size, group = settings["buffer_size"], []
    for event in run.events():
        if event.kind == "arrived":
            group.append(event.ticket)
            if len(group) == size:
                run.publish(run.x + sum(run.delta(t) / max(1, run.tau(t)) for t in group) / size, group)
                group = []
