"""MindFlayer SGD: each client makes a fixed number of trials at the present model, each cut off after a time.

Paper: Maranjyan, Shaikh Omar & Richtárik, "MindFlayer SGD: Efficient Parallel SGD in the Presence of Heterogeneous and
Random Worker Compute Times", 2024.

Rule: client i makes B_i trials at x^k, one after another; a trial that takes longer than t_i is cut off

    x^{k+1} = x^k + server_lr (1/B) sum of the changes of finished trials,     B = sum_i p_i B_i,  p_i = P(time <= t_i)

B is the number of trials that are *expected* to finish, not the number that did: so the step's expectation does not
depend on how many finished together. If none did, the model stays as it is, and the trials begin anew.

State: finished changes wait at the server until the step; two counts, and until t_i is known some times, per client.
Bytes beyond the model: none.

When to use it: all clients have the same data, or samples of the same distribution, and their times are random with
heavy tails, so that giving up a trial and beginning another is faster than waiting. It is in effect synchronous, and
t_i and B_i have to be chosen well; with data that differ between clients it converges to the optimum of those that
finish most.

t_i, if it is not given, is `slack` times the median of the client's first `warm_up` durations, which are not cut off.
After as many trials in a row that were cut off it is found anew: a client may have become slower for good. p_i, if it
is not given, is (1 + finished)/(1 + trials), counted over the client's trials before this step; both rules are ours. A
trial whose ticket is lost has not finished, so that nobody is waited for whose tickets are all lost; a p_i that is
given has to be the chance of both, in time and not lost. Who leaves before the step is out of it: its changes are
dropped, and B is without it. Who joins begins with the next step.

What goes wrong elsewhere: the public code divides by the number of trials that finished, which is another estimator:
its expectation is right only given that one finished at all.

Confirmed: rule and deviation by a review and the public code, as the algorithm sheet of this project records them; the
paper's abstract was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import median
from typing import Any, ClassVar

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, field, replace
from asyncfed.core.types import Action, Cancel, Dispatch, Drop, Merge, Schedule, Train, Update, Wake, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.dispatch import RuledStrategy, check_positive, check_rule_fits
from asyncfed.strategies.protocol import View
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.single_updates import SumOnly


class ClientTrials(Record):
    """What is known of one client.

    Args:
        left: how many trials are left in this step, the one that is out included; 0 if it has done all, or is not here.
        number: that of the trial that is out, which its timer has too.
        held: its finished tickets of this step.
        expected: p_i B_i, of this step.
        trials: how many it has made, before this step and in it.
        finished: how many of them were not cut off.
        times: the durations that t_i is found from.
        cut_in_a_row: how many were cut off since one finished, or since it was measured anew.
    """

    left: int = 0
    number: int = -1
    held: tuple[int, ...] = ()
    expected: float = 0.0
    trials: int = 0
    finished: int = 0
    times: tuple[float, ...] = ()
    cut_in_a_row: int = 0


class TrialState(Record):
    """The clients by number, changed in place; how many trials were begun, and how many clients are still trying."""

    clients: list[ClientTrials] = field(default_factory=list)
    begun: int = 0
    trying: int = 0


@register("strategy")
class MindFlayer(SumOnly, RuledStrategy, tag_field="kind", tag="mindflayer"):
    """MindFlayer SGD: x = x + (server_lr / B) sum of the finished changes, B the number expected to finish.

    Everybody is at work; who has made its trials waits for the step. A round is one step. See the head of the module
    for the whole algorithm. Settings that are tuples are by client; a client beyond the end has the last value.

    Args:
        trials: B_i, 1 or more.
        cut_off: t_i, in seconds, above 0, `inf` for never; None for `slack` times the client's median duration.
        finish_probability: p_i, above 0 and at most 1; None for what was counted so far.
        slack: see the head of the module; above 0.
        warm_up: how many durations the median is of, and after how many trials cut off in a row it is found anew, 1 or
            more.
        server_lr: the server's step along the mean, above 0.
        work: what each client is asked to do; the paper's is one step.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the sum above.

    >>> MindFlayer(finish_probability=0.0)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.finish_probability is 0.0; each must be above 0 and at most 1.
    """

    trials: int | tuple[int, ...] = 1
    cut_off: float | tuple[float, ...] | None = None
    finish_probability: float | tuple[float, ...] | None = None
    slack: float = 2.0
    warm_up: int = 5
    server_lr: float = 1.0
    work: Work = Work()
    schedule: Schedule = ConstantRate()

    state_class: ClassVar[type[Record]] = TrialState
    merges_several = True  # everybody's that has finished

    def __post_init__(self) -> None:
        _check_each("trials", self.trials, 1, inf, "a whole number of at least 1")
        _check_each("cut_off", self.cut_off, 5e-324, inf, "above 0 seconds")
        _check_each("finish_probability", self.finish_probability, 5e-324, 1.0, "above 0 and at most 1")
        if self.warm_up < 1:
            raise ConfigError(f"strategy.warm_up is {self.warm_up}; a median needs at least 1 duration.")
        check_positive("slack", self.slack)
        check_positive("server_lr", self.server_lr)

    @property
    def state_type(self) -> type[Any]:
        """The state's class."""
        return TrialState

    def check(self, num_clients: int) -> None:
        """Any number of clients will do; refuse a rule that does not fit the work."""
        check_rule_fits(self, self.work, num_clients)

    def start(self, view: View) -> tuple[TrialState, Sequence[Action]]:
        """Everybody's first trial."""
        return self._next_step(TrialState(), view, [])

    def on_update(self, state: TrialState, update: Update, view: View) -> tuple[TrialState, Sequence[Action]]:
        """A trial has finished."""
        client, report = update.report.client, update.report
        known = state.clients[client]
        times = (*known.times, report.duration) if len(known.times) < self.warm_up else known.times
        state.clients[client] = replace(known, held=(*known.held, report.ticket), times=times, cut_in_a_row=0)
        return self._trial_done(state, client, view, [], finished=True)

    def on_wake(self, state: TrialState, number: int, now: float, view: View) -> tuple[TrialState, Sequence[Action]]:
        """A trial's time is over: it is cut off, if it has not finished or been lost."""
        for ticket, dispatch in view.outstanding.items():  # the longest out are mostly first
            known = state.clients[dispatch.client]
            if known.left and known.number == number:
                cut = Cancel(ticket, "it takes longer than its cut-off")
                self._count_cut(state, dispatch.client)
                return self._trial_done(state, dispatch.client, view, [cut], finished=False)
        return state, ()

    def on_lost(self, state: TrialState, dispatch: Dispatch, view: View) -> tuple[TrialState, Sequence[Action]]:
        """The trial has not finished; who has left is out of the step already."""
        client = dispatch.client
        if client not in view.clients or not state.clients[client].left:
            return state, ()
        return self._trial_done(state, client, view, [], finished=False)

    def on_join(self, state: TrialState, client: int, view: View) -> tuple[TrialState, Sequence[Action]]:
        """It takes part in the next step, which begins now if nobody is at work."""
        return (state, ()) if state.trying else self._next_step(state, view, [])

    def on_leave(self, state: TrialState, client: int, view: View) -> tuple[TrialState, Sequence[Action]]:
        """It is out of this step, and its changes are dropped."""
        if client >= len(state.clients):
            return state, ()
        known = state.clients[client]
        actions: list[Action] = [Drop(ticket, "its client has left") for ticket in known.held]
        state.clients[client] = replace(known, left=0, held=(), expected=0.0)
        if not known.left:
            return state, actions
        state = replace(state, trying=state.trying - 1)
        return self._step_if_done(state, view, actions)

    def _trial_done(
        self, state: TrialState, client: int, view: View, actions: list[Action], finished: bool
    ) -> tuple[TrialState, Sequence[Action]]:
        known = state.clients[client]
        state.clients[client] = known = replace(
            known, left=known.left - 1, trials=known.trials + 1, finished=known.finished + finished
        )
        if known.left:
            more, state = self._begin_trial(state, client)
            return state, [*actions, *more]
        return self._step_if_done(replace(state, trying=state.trying - 1), view, actions)

    def _count_cut(self, state: TrialState, client: int) -> None:
        """One more was cut off. After `warm_up` in a row durations are measured anew: it may be slower for good."""
        known = state.clients[client]
        cut = known.cut_in_a_row + 1
        anew = cut >= self.warm_up
        state.clients[client] = replace(known, times=() if anew else known.times, cut_in_a_row=0 if anew else cut)

    def _step_if_done(
        self, state: TrialState, view: View, actions: list[Action]
    ) -> tuple[TrialState, Sequence[Action]]:
        if state.trying:
            return state, actions
        expected = sum(known.expected for known in state.clients)
        tickets = tuple(sorted(ticket for known in state.clients for ticket in known.held))
        if tickets:
            weights = (self.server_lr / expected,) * len(tickets)
            actions.append(Merge(tickets, weights, keep=1.0, of="delta", ends_round=True))
        return self._next_step(state, view, actions)

    def _next_step(self, state: TrialState, view: View, actions: list[Action]) -> tuple[TrialState, Sequence[Action]]:
        """Everybody's first trial at the model as it is now."""
        here = sorted(view.clients)
        known = state.clients
        known.extend(ClientTrials() for _ in range(max(here, default=-1) + 1 - len(known)))
        for client in here:
            trials = int(_of_client(self.trials, client))
            expected = trials * self._finish_probability(known[client], client)
            known[client] = replace(known[client], left=trials, held=(), expected=expected)
            begun, state = self._begin_trial(state, client)
            actions.extend(begun)
        return replace(state, trying=len(here)), actions

    def _begin_trial(self, state: TrialState, client: int) -> tuple[list[Action], TrialState]:
        state.clients[client] = known = replace(state.clients[client], number=state.begun)
        actions: list[Action] = [Train(client, self.work, self.schedule)]
        cut_off = self._cut_off(known, client)
        if cut_off < inf:
            actions.append(Wake(cut_off, state.begun))
        return actions, replace(state, begun=state.begun + 1)

    def _cut_off(self, known: ClientTrials, client: int) -> float:
        if self.cut_off is not None:
            return _of_client(self.cut_off, client)
        return inf if len(known.times) < self.warm_up else self.slack * median(known.times)

    def _finish_probability(self, known: ClientTrials, client: int) -> float:
        if self.finish_probability is not None:
            return _of_client(self.finish_probability, client)
        return (1 + known.finished) / (1 + known.trials)


def _of_client(setting: float | tuple[float, ...], client: int) -> float:
    return setting[min(client, len(setting) - 1)] if isinstance(setting, tuple) else setting


def _check_each(name: str, setting: float | tuple[float, ...] | None, least: float, most: float, words: str) -> None:
    values = setting if isinstance(setting, tuple) else () if setting is None else (setting,)
    if setting == () or not all(least <= value <= most for value in values):
        raise ConfigError(f"strategy.{name} is {setting}; each must be {words}.")


add_algorithm(
    Algorithm(
        name="mindflayer",
        summary="MindFlayer SGD: a trial per client, cut off if it takes too long, divided by how many should finish",
        make=lambda tickets, work, rate: MindFlayer(work=work),
        family="time-optimal",
        year=2024,
        timing="semi-synchronous",
        data="the same",
        server_memory="B",
        evidence="review",
    ),
    __name__,
)
