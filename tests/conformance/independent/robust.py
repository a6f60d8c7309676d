"""Algorithms that do not merge everything."""

import numpy as np


def aflguard(run, settings):
    """Accept iff |g_i - g_s| <= lambda |g_s|; g_s is the trusted client's change from the present model."""
    trusted, made_at = None, -1
    for event in run.events():
        if event.kind != "arrived":
            continue
        if trusted is None or run.version - made_at >= settings["refresh"]:
            work = run.works[settings["trusted_client"]]
            client, w, made_at = run.clients[settings["trusted_client"]], run.x.copy(), run.version
            for rate in work.rates():
                w = w - rate * (client.gradient(w) + work.proximal * (w - run.x))
            trusted = w - run.x
        change = run.delta(event.ticket)
        if np.linalg.norm(change - trusted) <= settings["distance_factor"] * np.linalg.norm(trusted):
            run.publish(run.x + settings["server_lr"] * change, [event.ticket])
        else:
            run.drop(event.ticket)
