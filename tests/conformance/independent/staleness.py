"""Asynchronous rules that count or damp staleness. tau is 0 for an update from the present version."""

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
    """w += eta_t (w_i - w_base): eta_t = eta up to tau_C, beyond it eta tau_C / tau, or the theorem's limit, or nothing.

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
