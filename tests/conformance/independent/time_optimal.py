"""Algorithms with the best possible clock."""


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
