"""The paper's algorithm in its four readings, and what its published scripts do."""

from .discounts import s
from .rates import DelayAwareRate


def afl(run, settings):
    """Every arrival is merged: w = mean of the latest models; or mixing; or the mean, or the sum, of deltas.

    A bound on staleness drops or damps what is above it.
    """
    rate = DelayAwareRate(run, settings["schedule"])
    latest, members = LatestModels(run, settings["weighting"]), 0
    for event in run.events():
        latest.come_and_go(event)
        if event.kind != "arrived":
            continue
        rate.arrived(event.duration)
        ticket, bound, factor = event.ticket, settings["max_staleness"], 1.0
        if bound is not None and run.tau(ticket) > bound:
            if settings["when_stale"] == "drop":
                run.drop(ticket)
                continue
            factor = s(settings["damping"], run.tau(ticket) - bound)
        if settings["aggregate"] == "latest":
            x = latest.mean_with(ticket, factor)
        elif settings["aggregate"] == "mixing":
            x = (1 - settings["mixing"] * factor) * run.x + settings["mixing"] * factor * run.result(ticket)
        else:
            if settings["weighting"] == "samples":
                mean = sum(run.clients[c].samples for c in run.here) / len(run.here)
                factor *= run.samples_of(ticket) / mean
            if settings["aggregate"] == "delta_mean":
                factor /= settings["concurrency"]
            x = run.x + factor * run.delta(ticket)
        run.publish(x, [ticket])
        members += 1
        if members == settings["concurrency"]:
            rate.end_round()
            members = 0


class LatestModels:
    """w = sum_c n_c w_c / sum_c n_c over the clients in the mean; those here at the start count as x0 at first."""

    def __init__(self, run, weighting):
        self.run, self.weighting = run, weighting
        self.slots = dict.fromkeys(run.here, run.x)
        self.left = set()

    def come_and_go(self, event):
        if event.kind == "left" and event.client in self.slots:
            self.left.add(event.client)
        elif event.kind == "joined":
            self.left.discard(event.client)  # back before the next merge: nothing was missed

    def mean_with(self, ticket, factor):
        for client in self.left:
            del self.slots[client]
        self.left.clear()
        client = self.run.client_of(ticket)
        old = self.slots.get(client, self.run.x)
        self.slots[client] = (1 - factor) * old + factor * self.run.result(ticket)
        counts = {c: self.run.clients[c].samples if self.weighting == "samples" else 1 for c in self.slots}
        return sum(counts[c] * w for c, w in self.slots.items()) / sum(counts.values())


def published(run, settings):
    """Barrier rounds; no client downloads; the server halves with each of the cohort in turn, or takes their mean."""
    schedule = settings["schedule"]
    if schedule is None and settings["mode"] == "afl":
        schedule = {"kind": "delay_aware", "delay_penalty": 0.01, "over": "epoch", "initial_spread": 0.0}
    rate = DelayAwareRate(run, schedule)
    own, cohort = {}, []
    run.start_from = lambda client: own.get(client, run.own_model(client))
    for event in run.events():
        if event.kind == "arrived":
            own[event.client] = run.result(event.ticket)
            rate.arrived(event.duration)
            cohort.append(event.ticket)
        if cohort and not run.out:
            cohort.sort()
            if settings["mode"] == "afl":
                for ticket in cohort:
                    run.publish((run.x + run.result(ticket)) / 2, [ticket])
            else:
                run.publish(sum(run.result(ticket) for ticket in cohort) / len(cohort), cohort)
            rate.end_round()
            cohort = []
