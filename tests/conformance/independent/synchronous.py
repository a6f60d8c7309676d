"""Algorithms that wait for all they asked: cohorts with a barrier; and one client after another."""

import numpy as np


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


def fednova(run, settings):
    """w += tau_eff sum p_i D_i / a_i, tau_eff = sum p_i a_i, p_i = n_i / n over the cohort.

    a_i counts the gradients in D_i: one for each step at the full rate; with a proximal term, a = a (1 - eta mu) + 1.
    """
    for cohort in cohorts(run):
        total = sum(run.samples_of(t) for t in cohort)
        p = {t: run.samples_of(t) / total if settings["weighting"] == "samples" else 1 / len(cohort) for t in cohort}
        a = {t: gradients_in(run.tickets[t].work) for t in cohort}
        tau_eff = sum(p[t] * a[t] for t in cohort)
        run.publish(run.x + tau_eff * sum(p[t] * run.delta(t) / a[t] for t in cohort), cohort)


def gradients_in(work):
    count = 0.0
    for rate in work.rates():
        count = count * (1 - rate * work.proximal) + rate / work.rate
    return count


def server_optimiser(run, settings):
    """D = sum n_i D_i / sum n_i is what an optimiser takes for its gradient: FedAdam, FedYogi, FedAdagrad, FedAvgM.

    v starts at eps^2 or more, and moments are not corrected for that, unless it is asked for.
    """
    o = settings["rule"]["optimiser"]
    m, v, rounds = 0 * run.x, 0 * run.x + o.get("v0", o.get("eps", 0.0) ** 2), 0
    for cohort in cohorts(run):
        counts = [run.samples_of(t) if settings["weighting"] == "samples" else 1 for t in cohort]
        mean = sum(n * run.delta(t) for n, t in zip(counts, cohort, strict=True)) / sum(counts)
        rounds += 1
        if o["kind"] == "momentum":
            m = o["b"] * m + mean
            run.publish(run.x + o["lr"] * m, cohort)
            continue
        m = o["b1"] * m + (1 - o["b1"]) * mean
        if o["kind"] == "adam":
            v = o["b2"] * v + (1 - o["b2"]) * mean**2
        elif o["kind"] == "yogi":
            v = v - (1 - o["b2"]) * mean**2 * np.sign(v - mean**2)
        else:
            v = v + mean**2
        corrected = o.get("bias_correction", False)
        m_hat = m / (1 - o["b1"] ** rounds) if corrected else m
        v_hat = v / (1 - o["b2"] ** rounds) if corrected else v
        run.publish(run.x + o["lr"] * m_hat / (np.sqrt(v_hat) + o["eps"]), cohort)


def in_turns(run, settings):
    """FedAvg's mean of cohorts that come in turns: by number, in one shuffled order, or in a fresh order each cycle."""
    n = len(run.here)
    fedavg(run, settings)
    if any(event.kind in ("joined", "left") for event in run._events):
        return  # the order of who stays is not touched, but where newcomers come in is a matter of taste
    asked, order = [ticket.client for ticket in run.tickets.values()], sorted(run.here)
    kind = settings["sampler"]
    if kind["kind"] == "fixed_cycle":
        wanted = [order[place % n] if kind["order"] == "numbered" else asked[place % n] for place in range(len(asked))]
        if asked != wanted:
            run.broken.append(f"the order is {asked}, not {wanted}")
    elif n % settings["cohort_size"] == 0:
        for begin in range(0, len(asked) - n + 1, n):
            if len(set(asked[begin : begin + n])) != n:
                run.broken.append(f"tickets {begin} to {begin + n - 1} are no permutation: {asked}")
