"""Who is asked, and who counts how much: selection by losses and speed, fairness.

Where a draw decides, only what it must respect is said: `run.limit`. Where nothing is left to chance, `run.predict`.
"""

from math import log, sqrt

import numpy as np

from .discounts import s
from .staleness import fedbuff
from .synchronous import fedavg


def row_rms(run, ticket):
    """The root mean square of the losses of its client's rows, with the model the ticket started from."""
    client = run.clients[run.client_of(ticket)]
    return sqrt(np.mean((0.5 * (client.a @ run.base(ticket) - client.y) ** 2) ** 2))


def qfair(run, settings):
    """w += sum L F_k^q D_k / sum h_k, h_k = q F_k^(q-1) |L D_k|^2 + L F_k^q, F_k the loss of the downloaded model."""
    q, cohort = settings["rule"]["q"], []
    for event in run.events():
        if event.kind == "arrived":
            cohort.append(event.ticket)
        if not cohort or run.out:
            continue
        up, down = 0 * run.x, 0.0
        for t in cohort:
            work = run.tickets[t].work
            steep = settings["rule"]["smoothness"] or 1 / work.rate
            loss = run.clients[run.client_of(t)].loss(run.base(t)) + 1e-10  # the authors' code adds it
            up = up + steep * loss**q * run.delta(t)
            length = steep * np.linalg.norm(run.delta(t))
            down += q * loss ** (q - 1) * length**2 + steep * loss**q
        run.publish(run.x + up / down, cohort)
        cohort = []


class Watched:
    """A run that tells `seen(event)` of every event, after what followed from it and before the next tickets leave."""

    def __init__(self, run, seen):
        self._run, self._seen = run, seen

    def __getattr__(self, name):
        return getattr(self._run, name)

    def events(self):
        for event in self._run.events():
            yield event
            self._seen(event)


def power_of_choice(run, settings):
    """Of d candidates those with the largest loss, who has not reported first; then the plain mean."""
    losses, size, candidates = {}, settings["cohort_size"], settings["sampler"]["candidates"]

    def seen(event):
        if event.kind == "arrived":
            losses[event.client] = run.clients[event.client].loss(run.base(event.ticket))
        idle = run.idle()
        if run.out or candidates < len(idle):
            return  # nobody is asked now; or the candidates are drawn, and nothing can be said
        unknown = idle - set(losses)
        known = sorted(idle & set(losses), key=lambda c: -losses[c])
        if len(unknown) >= size:
            run.limit(may=unknown)
        else:
            run.predict([*unknown, *known[: size - len(unknown)]], ordered=False)

    fedavg(Watched(run, seen), settings)


def oort(run, settings):
    """U_i = n_i rms_i + sqrt(0.1 ln R / last_i); of those that have reported, nobody is asked below the cut-off.

    The last place is that of as many as were not drawn to explore. Said only where speed does not count. Merged as
    FedAvg.
    """
    o, last, rounds = settings["sampler"], {}, [1]
    certain = o["preferred"] == 1 and not o["normalize"]
    lossy = [False]

    def seen(event):
        lossy[0] = lossy[0] or event.kind in ("lost", "left", "joined")
        if event.kind == "arrived":
            last[event.client] = (run.samples_of(event.ticket) * row_rms(run, event.ticket), rounds[0])
        if run.decided[-1].merged:
            rounds[0] += 1
        idle = run.idle()
        if run.out or lossy[0] or not certain:
            return
        utility = {c: u + sqrt(0.1 * log(rounds[0]) / when) for c, (u, when) in last.items() if c in idle}
        best, unknown = sorted(utility, key=lambda c: -utility[c]), idle - set(utility)
        exploited = sum(client in utility for _, client in event.sent)
        if exploited:
            least = o["cut_off"] * utility[best[exploited - 1]] * (1 - 1e-12)
            run.limit(may=unknown | {c for c in best if utility[c] >= least})

    fedavg(Watched(run, seen), settings)


def pisces(run, settings):
    """What arrived is merged once (longest known duration of those at work) / b has passed since the last merge:

    w += eta sum (n_i / n) s(tau_i) D_i. Asked is whoever has the largest n_i rms_i / (1 + mean of its last 5 tau)^p.
    """
    o, buffer, merged_at, durations, known, lossy = settings["sampler"], [], 0.0, {}, {}, False
    for event in run.events():
        lossy = lossy or event.kind in ("lost", "left", "joined")
        if event.kind == "arrived":
            client = event.client
            durations[client] = event.duration
            buffer.append((event.ticket, run.tau(event.ticket)))
            taus = [*known.get(client, (0, []))[1], run.tau(event.ticket)][-5:]
            known[client] = (run.samples_of(event.ticket) * row_rms(run, event.ticket), taus)
        due = event.kind == "arrived" or (event.kind == "woken" and event.number == run.version)
        if not due or not buffer:  # a timer that was set before the last merge counts no more
            continue
        wait = max((durations[c] for c in run.busy() if c in durations), default=0.0) / settings["staleness_bound"]
        if run.now - merged_at >= wait * (1 - 1e-12) - 1e-12:
            total = sum(run.samples_of(t) for t, _ in buffer)
            step = sum(run.samples_of(t) / total * s(settings["discount"], tau) * run.delta(t) for t, tau in buffer)
            run.publish(run.x + settings["server_lr"] * step, [t for t, _ in buffer])
            buffer, merged_at = [], run.now
        if event.kind == "arrived" and not lossy and len(event.sent) == 1:
            utility = {c: u / (1 + np.mean(taus)) ** o["staleness_power"] for c, (u, taus) in known.items()}
            best = max(run.idle() & set(utility), key=utility.get)
            run.limit(may={best} | (run.idle() - set(known)))  # the best, or one that was drawn to explore


def minimum_participation(run, settings):
    """Idle clients that waited for `gap` tickets for each client here come first, the longest waiting first."""
    given, since = [0], {}

    def seen(event):
        waited = {c: given[0] - since.get(c, 0) for c in run.here}
        overdue = sorted(
            (c for c in run.idle() if waited[c] >= settings["sampler"]["gap"] * len(run.here)), key=lambda c: -waited[c]
        )
        if event.kind == "joined":
            since.setdefault(event.client, given[0])
        free = len(event.sent)
        if event.kind == "arrived" and len(overdue) >= free > 0:
            least = waited[overdue[free - 1]]
            run.limit(must={c for c in overdue if waited[c] > least}, may={c for c in overdue if waited[c] >= least})
        elif event.kind == "arrived" and free:
            run.limit(must=set(overdue))
        for _, client in event.sent:
            given[0] += 1
            since[client] = given[0]

    fedbuff(Watched(run, seen), settings)
