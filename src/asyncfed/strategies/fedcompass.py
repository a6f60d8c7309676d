"""FedCompass: give each client as many local steps as make a group of them arrive together.

Paper: Li et al., "FedCompass: Efficient Cross-Silo Federated Learning on Heterogeneous Client Devices Using a Computing
Power-Aware Scheduler", ICLR 2024.

Rule: every client is at work; when all of a group are there, or at its latest time,

    x = x + server_lr sum_i p_i s(tau_i) (w_i - w_base,i)      p_i the share of samples, or 1/C

A client of v seconds per step joins the open group in which it can make most steps, floor((expected - now)/v) in
[Q_min, Q_max]; else it opens one, timed so that the next members of an open group can join. A group is merged at the
latest after 1.5 times its expected duration; who comes later gets the present model at once, and its update waits for
the next merge. Q_min 20, Q_max 100; v is 0.9 of the last ticket's and 0.1 of the old. A round is one merge. The clients
of the start are the first group, with Q_max steps, whose latest time the first arrival sets. The first update of a
client that joins later waits for the next merge. With equal, constant speeds there is one group: FedAvg.

State: the open groups, updates that wait, each client's speed. Bytes beyond the model: a number of steps, down.

When to use it: devices differ in speed and each keeps its own. Steps must cost time: with `Delays`, `compute` is the
seconds of one pass over the client's data. A client whose speed jumps comes late and counts little, and many steps on
differing data drive clients apart.

What goes wrong elsewhere: timers of the operating system, so that no run can be repeated; a step lost by rounding where
speeds are equal; a further factor 1/C on the weights (the authors' code, which also merges first updates one by one).

Confirmed: against the scheduler of the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from asyncfed.core.errors import ConfigError
from asyncfed.core.record import Record, field, replace
from asyncfed.core.types import Action, Dispatch, Merge, Schedule, Train, Update, Wake, Work
from asyncfed.registry import register
from asyncfed.strategies.algorithm import Algorithm, add_algorithm
from asyncfed.strategies.arrival_groups import Group, Held, choose_group, known_speed, steps_of_new_group
from asyncfed.strategies.discounts import Discount, Polynomial
from asyncfed.strategies.dispatch import RuledStrategy, check_between, check_positive, check_rule_fits
from asyncfed.strategies.protocol import View
from asyncfed.strategies.schedules import ConstantRate
from asyncfed.strategies.single_updates import SumOnly

PLACE = 0
"""The number of a timer that is due at once: it tells the time to place clients by. Groups are numbered from 1."""


class CompassState(Record):
    """The open groups, updates that came outside of one, clients to be placed, and seconds per step by client.

    A speed of -1 is unknown. Speeds are changed in place.
    """

    groups: tuple[Group, ...] = ()
    general: tuple[Held, ...] = ()
    unplaced: tuple[int, ...] = ()
    groups_made: int = 1
    speeds: list[float] = field(default_factory=list)


Decision: TypeAlias = tuple[CompassState, Sequence[Action]]


@register("strategy")
class FedCompass(SumOnly, RuledStrategy, tag_field="kind", tag="fedcompass"):
    """FedCompass: every client is at work, for so many local steps that groups of clients arrive at the same time.

        a group is merged when all of it has arrived, or at its latest time:
        x = x + server_lr sum_i p_i s(tau_i) (w_i - w_base,i)     p_i = n_i / sum_c n_c over the clients here, or 1/C

    Then its clients, the fastest first, are placed again. A client with v seconds per step joins the open group in
    which it can make most steps, `floor((expected - now) / v)` from `min_steps` to `max_steps`. If there is none it
    opens a group, whose `expected = now + steps v` and `latest = now + latest_factor steps v`; `steps` is the largest
    `floor((latest_g + max_steps v_g - now) / v)` up to `max_steps` over open groups g, v_g being the fastest of g, so
    that the next group of g can join it; at least `min_steps`, and `max_steps` if there is no such g.

    Who arrives after its group was merged gets the present model at once; its update waits for the next merge. So does
    the first update of a client that joins during the run, whose speed is not known before. The clients of the start
    are the first group: they make `max_steps` steps, and the first to arrive sets their latest time. A round is one
    merge.

    It remembers the groups, the updates that wait, and each client's speed `v <- (1 - m) v + m duration / steps`, m
    being `speed_momentum`. Timers are the run's own clock, virtual in a simulation.

    When: devices differ in speed, but each keeps its own. Pitfalls: a client whose speed jumps comes late and counts
    for little; many steps on differing data drive clients apart; `delays` must depend on the work, or steps cost
    nothing (in `Delays`, `compute` is then the seconds of one pass over the client's data).

    Args:
        min_steps: the paper's Q_min, 1 or more.
        max_steps: the paper's Q_max, `min_steps` or more.
        latest_factor: the paper's lambda: how many times the expected duration a group is waited for, 1 or more.
        speed_momentum: m, above 0 and at most 1.
        server_lr: the server's step along the weighted sum, above 0.
        weighting: p_i by "samples", or "equal".
        discount: s, what an update counts by its staleness when it is merged.
        work: what each client is asked to do; `steps` is set for each ticket.
        schedule: how the learning rate follows the rounds.
        rule: how arrivals become the next model; left out, by the weighted sum above.

    >>> FedCompass(min_steps=200)
    Traceback (most recent call last):
    asyncfed.core.errors.ConfigError: strategy.max_steps is 100, less than min_steps, 200.

    Li et al., "FedCompass: Efficient Cross-Silo Federated Learning on Heterogeneous Client Devices Using a
    Computing Power-Aware Scheduler", ICLR 2024.
    """

    min_steps: int = 20
    max_steps: int = 100
    latest_factor: float = 1.5
    speed_momentum: float = 0.9
    server_lr: float = 1.0
    weighting: Literal["samples", "equal"] = "samples"
    discount: Discount = Polynomial(power=0.5)
    work: Work = Work()
    schedule: Schedule = ConstantRate()
    single_updates = "a group that it merges may have a single member"

    def __post_init__(self) -> None:
        check_between("speed_momentum", self.speed_momentum, 0.0, 1.0)
        if self.min_steps < 1:
            raise ConfigError(f"strategy.min_steps is {self.min_steps}; it must be at least 1 mini-batch step.")
        if self.max_steps < self.min_steps:
            raise ConfigError(f"strategy.max_steps is {self.max_steps}, less than min_steps, {self.min_steps}.")
        if not 1 <= self.latest_factor < float("inf"):
            raise ConfigError(f"strategy.latest_factor is {self.latest_factor}; it must be at least 1, and finite.")
        check_positive("server_lr", self.server_lr)

    @property
    def state_type(self) -> type[Any]:
        """The state's class."""
        return CompassState

    def check(self, num_clients: int) -> None:
        """Any number of clients will do; refuse a rule that does not fit the work."""
        check_rule_fits(self, self.work, num_clients)

    def start(self, view: View) -> Decision:
        """Everybody is the first group."""
        clients = tuple(sorted(view.clients[place] for place in range(len(view.clients))))
        group = Group(1, None, None, clients)
        return CompassState((group,) if clients else ()), [self._train(c, self.max_steps) for c in clients]

    def on_update(self, state: CompassState, update: Update, view: View) -> Decision:
        """Measure the client's speed; merge its group if it was the last, or place the client anew if it came late."""
        report, client, actions = update.report, update.report.client, list[Action]()
        self._measure_speed(state.speeds, update)
        held = Held(report.ticket, client, update.dispatch.base_version)
        group = next((g for g in state.groups if client in g.out), None)
        if group is None:
            state = replace(state, general=(*state.general, held), unplaced=(*state.unplaced, client))
        else:
            times = {}
            if group.latest is None:
                wait = (self.latest_factor - 1.0) * report.duration
                times = {"expected": report.arrived_at, "latest": report.arrived_at + wait}
                actions.append(Wake(wait, group.number))
            out = tuple([c for c in group.out if c != client])
            after = replace(group, out=out, arrived=(*group.arrived, held), **times)
            state = replace(state, groups=tuple([after if g is group else g for g in state.groups]))
        return self._settle(state, report.arrived_at, view, actions)

    def on_lost(self, state: CompassState, dispatch: Dispatch, view: View) -> Decision:
        """Its group no longer waits for the client, which is placed anew as soon as the time is known: at once."""
        client = dispatch.client
        groups = tuple([replace(g, out=tuple([c for c in g.out if c != client])) for g in state.groups])
        unplaced = (*state.unplaced, client) if client in view.clients else state.unplaced
        return replace(state, groups=groups, unplaced=unplaced), [Wake(0.0, PLACE)]

    def on_join(self, state: CompassState, client: int, view: View) -> Decision:
        """The client is placed as soon as the time is known: at once."""
        return replace(state, unplaced=(*state.unplaced, client)), [Wake(0.0, PLACE)]

    def on_leave(self, state: CompassState, client: int, view: View) -> Decision:
        """It is no longer to be placed. Its ticket is lost next."""
        return replace(state, unplaced=tuple([c for c in state.unplaced if c != client])), ()

    def on_wake(self, state: CompassState, number: int, now: float, view: View) -> Decision:
        """A group's latest time has come, or clients are to be placed."""
        return self._settle(state, now, view, [], number)

    def _settle(
        self, state: CompassState, now: float, view: View, actions: list[Action], timer: int = PLACE
    ) -> Decision:
        """Merge groups that are complete, or whose timer came; place their clients, and those that wait for it."""
        due = [g for g in state.groups if not g.out or g.number == timer]
        if not due and not state.unplaced:
            return state, actions
        arrived = [held for group in due for held in group.arrived]
        merged, general = [*state.general, *arrived] if due else [], () if due else state.general
        if merged:
            weights = tuple([self._weight(held, view) for held in merged])
            tickets = tuple([held.ticket for held in merged])
            actions.append(Merge(tickets, weights, keep=1.0, of="delta", ends_round=True))
        groups, made = [g for g in state.groups if g not in due], state.groups_made
        fastest_first = sorted((state.speeds[held.client], held.client) for held in arrived)
        for client in dict.fromkeys([*(client for _, client in fastest_first), *state.unplaced]):
            if client not in view.clients or view.load(client):
                continue  # it has left since, or came back and was placed before
            speed, steps = known_speed(state.speeds, client), self.max_steps
            if speed is not None:
                index, steps = choose_group(groups, now, speed, self.min_steps, self.max_steps)
                if index < 0:
                    steps = steps_of_new_group(groups, now, speed, state.speeds, self.min_steps, self.max_steps)
                    made += 1
                    wait = self.latest_factor * steps * speed
                    groups.append(Group(made, now + steps * speed, now + wait, ()))
                    actions.append(Wake(wait, made))
                groups[index] = replace(groups[index], out=(*groups[index].out, client))
            actions.append(self._train(client, steps))
        return CompassState(tuple(groups), general, (), made, state.speeds), actions

    def _measure_speed(self, speeds: list[float], update: Update) -> None:
        report, work, client = update.report, update.dispatch.work, update.report.client
        steps = (report.metrics or {}).get("steps", work.count_steps(report.num_examples))
        speed, before = report.duration / max(1.0, steps), known_speed(speeds, client)
        speeds.extend([-1.0] * (client + 1 - len(speeds)))
        speeds[client] = speed if before is None else before + self.speed_momentum * (speed - before)

    def _weight(self, held: Held, view: View) -> float:
        share = 1.0 / max(1, len(view.clients))
        if self.weighting == "samples" and view.total_examples > 0:
            share = view.num_examples(held.client) / view.total_examples
        return self.server_lr * share * self.discount.weight(view.version - held.base_version)

    def _train(self, client: int, steps: int) -> Train:
        return Train(client, replace(self.work, steps=steps), self.schedule)


add_algorithm(
    Algorithm(
        name="fedcompass",
        server_memory="what waits",
        summary="FedCompass: everybody at work, with as many local steps as make groups arrive together",
        make=lambda tickets, work, rate: FedCompass(work=work),
        family="semi-synchronous",
        year=2023,
        timing="semi-synchronous",
        data="similar",
        extra_down="a number",
        evidence="code",
    ),
    __name__,
)
