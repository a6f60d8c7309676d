"""The table family: a vector of every client, kept at the server."""

from .discounts import s


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
