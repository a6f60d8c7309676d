"""The learning rate of the paper: base / (sqrt(t + 1) (1 + alpha * spread of the last round's delays))."""

from dataclasses import replace
from math import sqrt


class DelayAwareRate:
    """Sets `run.work_of` by rounds and by the durations that arrived in the last complete round."""

    def __init__(self, run, schedule):
        self.run, self.schedule, self.rounds, self.durations, self.spread = run, schedule, 0, [], None
        if schedule is not None and schedule["kind"] == "delay_aware":
            run.work_of = self.work

    def arrived(self, duration):
        self.durations.append(duration)

    def end_round(self):
        self.rounds += 1
        if self.durations:
            self.spread = max(self.durations) - min(self.durations)
        self.durations = []

    def work(self, client):
        spread = self.schedule["initial_spread"] if self.spread is None else self.spread
        work = self.run.works[client]
        rate = work.rate / (1 + self.schedule["delay_penalty"] * spread)
        if self.schedule["over"] == "round":
            rate /= sqrt(self.rounds + 1)
        decay = 0.5 if self.schedule["over"] == "epoch" else work.decay
        return replace(work, rate=rate, decay=decay)
