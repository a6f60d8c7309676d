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
