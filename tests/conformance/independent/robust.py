"""Algorithms that do not merge everything."""

import numpy as np


def trained_by_the_server(run, client):
    """The change that this client's rows bring from the present model."""
    w, work = run.x.copy(), run.works[client]
    for rate in work.rates():
        w = w - rate * (run.clients[client].gradient(w) + work.proximal * (w - run.x))
    return w - run.x


def aflguard(run, settings):
    """Accept iff |g_i - g_s| <= lambda |g_s|; g_s is the trusted client's change from the present model."""
    trusted, made_at = None, -1
    for event in run.events():
        if event.kind != "arrived":
            continue
        if trusted is None or run.version - made_at >= settings["refresh"]:
            trusted, made_at = trained_by_the_server(run, settings["trusted_client"]), run.version
        change = run.delta(event.ticket)
        if np.linalg.norm(change - trusted) <= settings["distance_factor"] * np.linalg.norm(trusted):
            run.publish(run.x + settings["server_lr"] * change, [event.ticket])
        else:
            run.drop(event.ticket)


def zeno(run, settings):
    """g scaled to |v|; accepted iff gamma <v, g> - rho |g|^2 + gamma eps >= 0, with the scaled g; zero is rejected."""
    v, made_at = None, -1
    for event in run.events():
        if event.kind != "arrived":
            continue
        if v is None or run.version - made_at >= settings["refresh"]:
            v, made_at = trained_by_the_server(run, settings["trusted_client"]), run.version
        g = run.delta(event.ticket)
        if not np.any(g):
            run.drop(event.ticket)
            continue
        g = g * (np.linalg.norm(v) / np.linalg.norm(g))
        if settings["gamma"] * (v @ g) - settings["rho"] * (g @ g) + settings["gamma"] * settings["eps"] >= 0:
            run.publish(run.x + settings["server_lr"] * g, [event.ticket])
        else:
            run.drop(event.ticket)


def basgd(run, settings):
    """Client s has bucket s mod B, which keeps a running mean; when no bucket is empty, a step along their aggregate.

    A bucket all of whose clients are away is not waited for, while 2q + 1 others are filled.
    """
    buckets, aggregate = settings["buckets"], settings["aggregator"]
    count, mean, tickets = [0] * buckets, [0.0] * buckets, []
    withstands = (buckets - 1) // 2 if aggregate["kind"] == "median" else aggregate["liars"]
    for event in run.events():
        if event.kind == "arrived":
            b = event.client % buckets
            count[b] += 1
            mean[b] = (count[b] - 1) / count[b] * mean[b] + run.delta(event.ticket) / count[b]
            tickets.append(event.ticket)
        elif event.kind != "left":
            continue
        awaited = {client % buckets for client in run.here}
        filled = [b for b in range(buckets) if count[b]]
        if awaited <= set(filled) and len(filled) >= 2 * withstands + 1:
            values = np.sort(np.array([mean[b] for b in filled]), axis=0)
            if aggregate["kind"] == "median":
                step = np.median(values, axis=0)
            else:
                step = values[withstands : len(values) - withstands].mean(axis=0)
            run.publish(run.x + settings["server_lr"] * step, tickets)
            count, mean, tickets = [0] * buckets, [0.0] * buckets, []


def robust_momentum(run, settings):
    """Of each client its latest momentum and how often it reported; a step along their weighted median."""
    rule, momenta, reports = settings["rule"], {}, {}
    for event in run.events():
        if event.kind != "arrived":
            continue
        client, change, beta = event.client, run.delta(event.ticket), rule["momentum"]
        momenta[client] = beta * momenta[client] + (1 - beta) * change if client in momenta else change
        reports[client] = reports.get(client, 0) + 1
        if len(momenta) < 2 * rule["aggregator"].get("liars", 1) + 1:
            run.publish(run.x, [event.ticket])
            continue
        clients = sorted(momenta)
        weights = np.array([reports[c] if rule["by_count"] else 1 for c in clients]) / 1.0
        step = weighted_median(np.array([momenta[c] for c in clients]), weights)
        run.publish(run.x + settings["server_lr"] * step, [event.ticket])


def weighted_median(vectors, weights):
    """Of each coordinate the first value at which the weight up to it is above half; at exactly half, the middle."""
    result = []
    for column in vectors.T:
        order = np.argsort(column, kind="stable")
        reached = np.cumsum(weights[order])
        place = int(np.argmax(2 * reached >= weights.sum()))
        value = column[order[place]]
        result.append((value + column[order[place + 1]]) / 2 if 2 * reached[place] == weights.sum() else value)
    return np.array(result)


def kardam(run, settings):
    """Lipschitz filter, frequency filter over the f busiest, and exp(-a tau)."""
    f, code = settings["liars"], settings["reading"] == "code"
    last, coefficients, accepted, applied, refused = {}, {}, [], None, 0
    for event in run.events():
        if event.kind != "arrived":
            continue
        client, g, start = event.client, run.delta(event.ticket), run.base(event.ticket)
        moved = client not in last or np.any(start != last[client][1])
        if client in last and moved:
            ratio = np.linalg.norm(g - last[client][0]) / np.linalg.norm(start - last[client][1])
            coefficients.setdefault(client, []).append(ratio)
        if moved:
            last[client] = (g, start)
        ours = sorted(max(each[-25:]) if code else each[-1] for each in coefficients.values())
        candidate, passes = None, True
        if not code and client in coefficients:
            candidate = coefficients[client][-1]
        elif code and applied is not None and np.any(run.x != applied[1]):
            candidate = np.linalg.norm(g - applied[0]) / np.linalg.norm(run.x - applied[1])
        if candidate is not None and ours:
            share = 2 / 3 if code else (run.num_clients - f) / run.num_clients
            below = int(np.ceil(share * len(ours) - 1e-9))
            passes = candidate <= ours[below - 1] or (settings["escape"] and refused >= len(run.here))
        if passes and not code:
            window = [*accepted, client][-(2 * f + 1) :]
            counts = sorted((window.count(c) for c in set(window)), reverse=True)
            passes = sum(counts[:f]) <= f
        if not passes and f > 0:
            refused += 1
            run.drop(event.ticket)
            continue
        refused, applied = 0, (g, run.x)
        accepted.append(client)
        run.publish(
            run.x + settings["server_lr"] * np.exp(-settings["damping"] * run.tau(event.ticket)) * g, [event.ticket]
        )
