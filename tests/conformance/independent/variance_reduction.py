"""Control variates against the drift of local steps."""

import numpy as np

from .discounts import s
from .synchronous import cohorts


class Variates:
    """SCAFFOLD, option II: c_i+ = c_i - c + (w_base - y) / (sum of the steps' rates), c and c_i those of the download.

    c is the mean of all c_i: it moves by (1/n) sum over the cohort of (c_i+ - c_i), n counting all clients.
    """

    def __init__(self, run):
        self.run = run
        self.variates = [np.zeros_like(run.x) for _ in run.clients]
        run.correction = lambda client: self.mean() - self.variates[client]

    def mean(self):
        return sum(self.variates) / self.run.num_clients

    def merged(self, tickets):
        for number in tickets:
            ticket = self.run.tickets[number]
            pace = sum(ticket.work.rates())
            self.variates[ticket.client] = (ticket.base - self.run.result(number)) / pace - ticket.correction


def scaffold(run, settings):
    """Every local step: y -= lr (g(y) - c_i + c). Server: w += mean of the changes, unweighted."""
    variates = Variates(run)
    for cohort in cohorts(run):
        run.publish(run.x + sum(run.delta(t) for t in cohort) / len(cohort), cohort)
        variates.merged(cohort)


def scaffold_async(run, settings):
    """FedAsync with SCAFFOLD's corrections: those that were downloaded with the model, under any delay."""
    variates = Variates(run)
    for event in run.events():
        if event.kind == "arrived":
            a = settings["mixing"] * s(settings["discount"], run.tau(event.ticket))
            run.publish((1 - a) * run.x + a * run.result(event.ticket), [event.ticket])
            variates.merged([event.ticket])


def feddyn(run, settings):
    """Clients minimise F_i(w) - <g_i, w> + alpha/2 |w - x|^2; g_i -= alpha (w_i - x).

    Server: h -= (alpha/n) sum_S (w_i - x), n counting all clients; x = mean_S w_i - h / alpha.
    """
    alpha = run.works[0].proximal
    g, h = [0 * run.x for _ in run.clients], 0 * run.x
    run.correction = lambda client: -g[client]
    for cohort in cohorts(run):
        for t in cohort:
            g[run.client_of(t)] = g[run.client_of(t)] - alpha * run.delta(t)
            h = h - alpha / run.num_clients * run.delta(t)
        run.publish(sum(run.result(t) for t in cohort) / len(cohort) - h / alpha, cohort)
