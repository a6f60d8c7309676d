"""Random schedules: small least-squares runs in AsyncFed's simulator, and what an independent side may know of them."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tests.conformance.independent.schedule import Client, Decided, Event, Run
from tests.conformance.independent.schedule import Work as PlainWork

from asyncfed.core.random import MASK, TICKET_STEP, Stream, draw_key, purpose_key, unit
from asyncfed.core.record import UNSET, from_plain
from asyncfed.core.types import Work
from asyncfed.data.clients import Clients
from asyncfed.delays import Timing
from asyncfed.engine.evaluation import Evaluation
from asyncfed.engine.plan import Churn, Plan
from asyncfed.problems import Linear
from asyncfed.sim.simulation import Simulation
from asyncfed.store.journal import Journal
from asyncfed.store.schema import KIND_NAMES

TOLERANCE = 1e-12

INPUTS = {"report": "arrived", "lost": "lost", "join": "joined", "leave": "left", "wake": "woken"}


class RandomDelays:
    """A delay model whose every answer follows from (client, ticket): slow and fast clients, and noise of its own.

    Args:
        seed: of all draws.
        pace: seconds of each client for one ticket, or for one local step if `per_step`.
        noise: sigma of the logarithm; 0: the pace itself, so that arrivals often coincide.
        loss: how likely a ticket is lost.
        per_step: whether local steps cost time.
    """

    def __init__(self, seed: int, pace: list[float], noise: float, loss: float, per_step: bool) -> None:
        self._noise_key, self._loss_key = purpose_key(seed, "noise"), purpose_key(seed, "loss")
        self.pace, self.noise, self.loss, self.per_step = pace, noise, loss, per_step

    def timing(self, client: int, ticket: int, work: Work, num_examples: int) -> Timing:
        lot = unit(draw_key(self._noise_key, client, ticket))
        seconds = self.pace[client] * float(np.exp(self.noise * np.log(lot / (1.0 - lot))))
        if self.per_step:
            seconds *= work.count_steps(num_examples)
        return Timing(0.0, seconds, 0.0, unit(draw_key(self._loss_key, client, ticket)) < self.loss)

    def watts(self, client: int) -> float:
        return 1.0

    def finish_compute(self, client: int, start: float, seconds: float) -> float:
        return start + seconds

    def lost_after(self, client: int, ticket: int, timing: Timing) -> float:
        return timing.compute


@dataclass
class World:
    """The clients of a schedule and what happens to them."""

    clients: list[Client]
    problem: Linear
    delays: RandomDelays
    churn: tuple[Churn, ...]
    work: Work
    tickets: int
    arrivals: int
    seed: int

    @property
    def num_clients(self) -> int:
        return len(self.clients)

    def moved(self, shift: np.ndarray) -> World:
        """The same with its origin elsewhere: every model becomes that model plus `shift`."""
        clients = [Client(c.a, c.y + c.a @ shift, c.l2) for c in self.clients]
        return replace(self, clients=clients, problem=MovedProblem(clients, self.problem.model.l2, shift))

    def renamed(self, order: list[int]) -> World:
        """The same with client c called order[c]."""
        old = [order.index(new) for new in range(len(order))]
        clients, delays = [self.clients[c] for c in old], copy(self.delays)
        delays.pace = [self.delays.pace[c] for c in old]
        return replace(self, clients=clients, problem=least_squares(clients), delays=delays)


def least_squares(clients: list[Client]) -> Linear:
    """AsyncFed's problem of these clients."""
    packed = Clients.from_lists([c.a.tolist() for c in clients], [c.y.tolist() for c in clients], labels=False)
    return Linear(packed, l2=clients[0].l2, fit_bias=False)


class MovedProblem(Linear):
    """Starts elsewhere."""

    def __init__(self, clients: list[Client], l2: float, shift: np.ndarray) -> None:
        self.shift = shift
        super().__init__(least_squares(clients).clients, l2=l2, fit_bias=False)

    def init(self, *args: Any, **how: Any) -> np.ndarray:
        return super().init(*args, **how) + self.shift


def draw_world(seed: int, *, losses: bool = True, churn: bool = True, per_step: bool = False, **fixed: Any) -> World:
    """Everything about a schedule but its strategy.

    `fixed` sets `num_clients`, `tickets`, `l2`, `repeated` (clients whose rows are all the same) or fields of the work.
    """
    rng = np.random.default_rng(seed)
    n = fixed.pop("num_clients", int(rng.integers(2, 8)))
    tickets = fixed.pop("tickets", int(rng.integers(1, n + 1)))
    dimension = int(rng.integers(2, 5))
    counts = rng.integers(1, 7, n)
    inputs = [rng.normal(size=(count, dimension)) for count in counts]
    targets = [rng.normal(size=count) + 2.0 * rng.normal() for count in counts]
    repeated = fixed.pop("repeated", not per_step and rng.random() < 0.3)
    if repeated:  # clients of one row each, many times: any batch is like any other, and numbers of steps differ
        inputs, targets = [np.repeat(a[:1], len(a), 0) for a in inputs], [np.repeat(y[:1], len(y)) for y in targets]
    l2 = fixed.pop("l2", float(rng.choice([0.0, 0.1])))
    steepest = max(np.linalg.eigvalsh(a.T @ a / len(a))[-1] for a in inputs) + l2
    work = Work(
        **{
            "epochs": int(rng.integers(1, 5)),
            "batch_size": int(rng.integers(1, 4)) if repeated else 8,
            "learning_rate": float(rng.uniform(0.02, 0.4) / steepest),
            "decay": float(rng.choice([0.0, 0.0, 0.5])),
            "proximal": float(rng.choice([0.0, 0.0, 0.3])),
            **fixed,
        }
    )
    kind = rng.integers(4)
    pace = [1.0] * n if kind == 0 else (np.exp(rng.normal(0.0, [0, 0.2, 1.0, 2.0][kind], n))).tolist()
    delays = RandomDelays(
        seed, pace, float(rng.choice([0.0, 0.3, 1.0])), float(rng.choice([0.0, 0.0, 0.2])) * losses, per_step
    )
    comings: list[Churn] = []
    if churn and n > 2 and rng.random() < 0.4:
        for client in rng.choice(n, int(rng.integers(1, n - 1)), replace=False).tolist():
            moments, event = np.cumsum(rng.exponential(8.0, int(rng.integers(1, 4)))), rng.choice(["leave", "join"])
            for moment in moments.tolist():
                comings.append(Churn(time=moment, client=int(client), event=str(event)))
                event = "join" if event == "leave" else "leave"
    clients = [Client(a, y, l2) for a, y in zip(inputs, targets, strict=True)]
    problem = least_squares(clients)
    arrivals = int(rng.integers(15, 50))
    return World(clients, problem, delays, tuple(comings), work, tickets, arrivals, seed)


@dataclass
class Recording:
    """What AsyncFed did: the events with whom it asked after each, and its own decisions and models."""

    world: World
    events: list[Event]
    decided: list[Decided]
    versions: list[np.ndarray]
    base: dict[int, int]
    works: dict[int, Work]
    weights: list[dict[int, float]]
    keeps: list[float]
    payloads: list[str]
    here: list[int]
    plan: Plan
    reports: dict[int, dict[str, float]]


def record(world: World, strategy: Any, init: str = "torch") -> Recording:
    """Run the strategy in this world."""
    strategy.check(world.num_clients)
    plan = Plan(strategy, seed=world.seed, init=init, churn=world.churn, evaluation=Evaluation(every=0))
    journal = Journal.create(None, {})
    models: list[np.ndarray] = []
    observe = lambda execution, merge: models.append(execution.vectors.params)  # noqa: E731
    simulation = Simulation(world.problem, world.delays, plan, journal, observer=observe)
    simulation.advance(world.arrivals)
    models.append(simulation.state.params)
    assert not simulation.state._execution.diverged, simulation.state.verdict
    absent = plan.absent_at_start()
    here = [client for client in range(world.num_clients) if client not in absent]
    rows = [(KIND_NAMES[e[2]], e) for e in journal.events]
    texts = {number: text for text, number in journal._detail_ids.items()}
    recording = Recording(world, [], [], models, {}, {}, [], [], [], here, plan, {})
    _read(recording, rows, texts)
    return recording


def _read(recording: Recording, rows: list[Any], texts: dict[int, str]) -> None:
    draws, inputs, out = purpose_key(recording.plan.seed, "strategy"), 0, {}
    recording.events.append(Event("start"))
    recording.decided.append(Decided())
    for kind, (_, time, _, ticket, client, version, a, b, detail) in rows:
        if kind in INPUTS:
            event = Event(INPUTS[kind], time, -1 if ticket is None else ticket, -1 if client is None else client)
            if kind in ("report", "lost"):
                event.duration = a
                out.pop(ticket)
                if kind == "report" and detail is not None:
                    recording.reports[ticket] = json.loads(texts[detail])
            elif kind == "wake":
                event.number = int(a)
            recording.events.append(event)
            recording.decided.append(Decided())
        event, decided = recording.events[-1], recording.decided[-1]
        if event.draws is None:
            inputs += 1
            event.draws = Stream((draws + inputs * TICKET_STEP) & MASK)
            if event.kind == "left":  # each ticket that is lost with it is an input of its own
                lost = [t for t, c in out.items() if c == event.client]
                inputs += len(lost)
                for gone in lost:
                    del out[gone]
        if kind == "dispatch":
            event.sent = (*event.sent, (ticket, client))
            out[ticket] = client
            recording.base[ticket], recording.works[ticket] = version, from_plain(json.loads(texts[detail]), Work)
        elif kind == "merge":
            form = json.loads(texts[detail])
            tickets = (ticket,) if ticket is not None else tuple(form["tickets"])
            weights = (a,) if ticket is not None else form["weights"]
            decided.merged.append(tuple(sorted(tickets)))
            recording.weights.append(dict(zip(tickets, weights, strict=True)))
            recording.keeps.append(b)
            recording.payloads.append("rule" if form.get("combiner") else form["of"])
        elif kind == "drop":
            decided.dropped.append(ticket)
        elif kind == "cancel":
            decided.cancelled.append(ticket)
            del out[ticket]


def plain_work(work: Work, samples: int) -> PlainWork:
    """What a client with so many samples is asked for."""
    per_epoch = -(-samples // work.batch_size)
    steps = work.epochs * per_epoch if work.steps is UNSET else work.steps
    return PlainWork(steps, work.learning_rate, work.decay, work.proximal, per_epoch)


def schedule_of(recording: Recording) -> Run:
    """The recorded schedule, without anything that was decided but who was asked."""
    world = recording.world
    events = [
        Event(e.kind, e.time, e.ticket, e.client, e.duration, e.number, (), e.draws, e.sent) for e in recording.events
    ]
    own = lambda client: world.problem.init(world.seed, client=client, how=recording.plan.init)  # noqa: E731
    works = [plain_work(recording.plan.strategy.work, client.samples) for client in world.clients]
    return Run(world.clients, recording.versions[0], works, events, recording.here, own)


class Disagreement(AssertionError):
    """An independent implementation and AsyncFed differ."""


def compare(recording: Recording, run: Run) -> float:
    """The largest difference between the models of all versions, relative to their size; raises if they differ."""
    for number, (event, mine, theirs) in enumerate(zip(recording.events, recording.decided, run.decided, strict=True)):
        where = f"event {number}, {event.kind} ticket {event.ticket} of client {event.client}"
        for what in ("merged", "dropped", "cancelled"):
            did, should = getattr(mine, what), getattr(theirs, what)
            if what != "merged":
                did, should = sorted(did), sorted(should)
            if did != should:
                raise Disagreement(f"{where}: AsyncFed {what} {did}, the formula {should}")
    if run.broken:
        raise Disagreement(run.broken[0])
    for ticket, base in recording.base.items():
        if run.tickets[ticket].version != base:
            raise Disagreement(f"ticket {ticket} left with version {base}, not {run.tickets[ticket].version}")
        should_be = run.tickets[ticket].work
        asked = plain_work(recording.works[ticket], run.samples_of(ticket))
        if asked.steps != should_be.steps or abs(asked.rate - should_be.rate) > TOLERANCE * asked.rate:
            raise Disagreement(f"ticket {ticket} was asked for {asked}, the formula says {should_be}")
    largest = 0.0
    for version, (mine, theirs) in enumerate(zip(recording.versions, run.versions, strict=True)):
        size = max(1.0, float(np.abs(theirs).max()))
        difference = float(np.abs(mine - theirs).max()) / size
        if not difference <= TOLERANCE:
            raise Disagreement(f"version {version} differs by {difference:.3g}: {mine} and {theirs}")
        largest = max(largest, difference)
    return largest
