"""Algorithms that wait for all they asked: cohorts with a barrier; and one client after another."""


def cohorts(run):
    """The reports of each cohort, once nobody of it is out any more, in ticket order; tickets may be lost."""
    reported = []
    for event in run.events():
        if event.kind == "arrived":
            reported.append(event.ticket)
        if reported and not run.out:
            yield sorted(reported)
            reported = []


def fedavg(run, settings):
    """w = sum n_i w_i / sum n_i over the cohort, or the plain mean; a proximal term makes it FedProx."""
    for cohort in cohorts(run):
        counts = [run.samples_of(t) if settings["weighting"] == "samples" else 1 for t in cohort]
        run.publish(sum(n * run.result(t) for n, t in zip(counts, cohort, strict=True)) / sum(counts), cohort)


def cyclic(run, settings):
    """One at a time: w = w_i. In every cycle of clients that stay, each has one turn."""
    for event in run.events():
        if event.kind == "arrived":
            run.publish(run.result(event.ticket), [event.ticket])
