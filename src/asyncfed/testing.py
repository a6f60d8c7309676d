"""Conformance checks for what a user may write: a strategy, a problem, a delay model. All that is shipped passes them.

Each check raises `AssertionError` with a sentence that says what is wrong and when it happened.

>>> from asyncfed.strategies import FedAsync
>>> check_strategy(FedAsync(concurrency=3))
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.server import Server
from asyncfed.core.types import Dispatch, Output, Report, Strategy, Work
from asyncfed.delays import DelayModel, Timing, check_timing
from asyncfed.problems.protocol import Jobs, Problem

__all__ = ["check_delay", "check_problem", "check_strategy"]

PATIENCE = 200
"""So many arrivals may pass before a strategy must have merged something, and merged or dropped each report."""


# ---- strategies ------------------------------------------------------------------------------------------------------


class Weather(NamedTuple):
    """What befalls the clients: the chances, per step, of a loss, a leave and a join; the rest are arrivals."""

    name: str
    steps: int
    loss: float = 0.0
    leave: float = 0.0
    join: float = 0.0
    doomed: bool = False  # client 0's tickets are all lost
    exodus: float = 0.0  # the chance, when all are here, that all leave one by one; then one comes back


WEATHERS = (
    Weather("arrivals in random order", steps=PATIENCE + 40),
    Weather("losses", steps=80, loss=0.3),
    Weather("a client whose every ticket is lost", steps=60, doomed=True),
    Weather("joins and leaves", steps=120, loss=0.1, leave=0.1, join=0.15),
    Weather("everybody leaves and one comes back", steps=120, join=0.2, exodus=0.3),
)


def check_strategy(strategy: Strategy, num_clients: int = 5, seed: int = 0) -> None:
    """Drive a strategy through randomised schedules and refuse it unless it can be simulated, deployed and resumed.

    It must be a frozen value (hashable, equal to its pickled copy, unchanged by a run); decide the same when given the
    same; go on identically from a snapshot that went through JSON; never break the server's rules (a ticket is merged
    or dropped once, with finite weights); never rest while clients are idle and nothing is in flight; get over the
    loss of any dispatch and the leave of any client; and refuse, in `check`, more tickets than there are clients.
    """
    copy = _pickled_copy(strategy)
    with _blamed("check refuses the number of clients the strategy is tested with"):
        strategy.check(num_clients)
    for number, weather in enumerate(WEATHERS):
        key = draw_key(purpose_key(seed, "check_strategy"), number, 0)
        first = _Drive(strategy, num_clients, key).through(weather)
        again = _Drive(strategy, num_clients, key).through(weather)
        _expect_same(first, again, f"{weather.name}: run twice on the same inputs")
        resumed = _Drive(copy, num_clients, key).through(weather, interrupt_every=7)
        _expect_same(first, resumed, f"{weather.name}: resumed from snapshots, with a pickled copy of the strategy")
    for ticket in range(2 * num_clients):
        for mishap in ("loss", "leave"):
            _Drive(strategy, num_clients, draw_key(seed, ticket, 0)).gets_over(mishap, ticket)
    assert strategy == copy, "the strategy changed while it was driven; its state must go in and come out instead."
    _expect_refusal_of_crowd(strategy, num_clients)


def _pickled_copy(strategy: Strategy) -> Strategy:
    try:
        copy: Strategy = pickle.loads(pickle.dumps(strategy))
    except Exception as problem:
        raise AssertionError(f"the strategy cannot be pickled ({problem}); keep only plain values in it.") from problem
    assert copy == strategy, "the strategy is not equal to its pickled copy; make it a frozen value, such as a Config."
    try:
        same = hash(copy) == hash(strategy)
    except TypeError as problem:
        raise AssertionError(f"the strategy is not hashable ({problem}); use tuples in place of lists.") from problem
    assert same, "the strategy and its pickled copy have different hashes."
    return copy


def _expect_same(one: list[Any], other: list[Any], when: str) -> None:
    for step, (expected, got) in enumerate(zip(one, other, strict=True)):
        assert expected == got, f"{when}: step {step} was decided as {expected}, then as {got}."


def _expect_refusal_of_crowd(strategy: Strategy, num_clients: int) -> None:
    """Only of a strategy that wants a fixed number of tickets and, with too few clients, hands out fewer."""
    wanted = _first_tickets(strategy, num_clients)
    if _first_tickets(strategy, num_clients + 1) != wanted or wanted < 2:
        return
    if _first_tickets(strategy, wanted - 1) == wanted:
        return  # busy clients queue their tickets
    try:
        strategy.check(wanted - 1)
    except ConfigError:
        return
    raise AssertionError(f"check({wanted - 1}) accepts fewer clients than the {wanted} tickets the strategy hands out.")


def _first_tickets(strategy: Strategy, num_clients: int) -> int:
    return sum(isinstance(output, Dispatch) for output in Server(strategy, [1] * num_clients).start())


@contextmanager
def _blamed(when: str) -> Iterator[None]:
    """What goes wrong in here is the strategy's fault."""
    try:
        yield
    except Exception as problem:
        raise AssertionError(f"{when}: {type(problem).__name__}: {problem}") from problem


class _Drive:
    """One server under one schedule. All choices come from `key` and from what the server can be seen to do."""

    def __init__(self, strategy: Strategy, num_clients: int, key: int) -> None:
        self._strategy = strategy
        self._examples = [3 * client + 1 for client in range(num_clients)]
        self._key = key
        self._chance = Stream(key)
        self._fleeing = False
        self._arrivals = 0
        self._arrival_of: dict[int, int] = {}
        self._now = 0.0
        self._server = Server(strategy, self._examples, seed=key)
        self._story: list[Any] = []
        self._tell("start", self._server.start)

    def through(self, weather: Weather, interrupt_every: int | None = None) -> list[Any]:
        """Everything that was put in and decided; optionally a restored server takes over now and then."""
        for step in range(weather.steps):
            if self._server.stopped is not None:
                break
            if interrupt_every is not None and step % interrupt_every == 0:
                self._resume_from_snapshot()
            self._befall(weather)
        return self._story

    def gets_over(self, mishap: str, ticket: int) -> None:
        """Lose one ticket, or its client: afterwards a merge must come, and as many must be at work as before."""
        server = self._server
        most = len(server.outstanding)
        while ticket not in server.outstanding:
            if server.stopped is not None or self._arrivals >= PATIENCE:
                return
            self._arrive()
            most = max(most, len(server.outstanding))
        client, version = server.outstanding[ticket].client, server.version
        if mishap == "leave":
            self._tell(f"client {client} leaves", lambda: server.leave(client))
        else:
            self._tell(f"ticket {ticket} is lost", lambda: server.lose(ticket))
        wanted = min(most, len(server.clients))
        most_since = len(server.outstanding)
        for _ in range(PATIENCE):
            if (
                server.stopped is not None
                or not server.outstanding
                or (server.version > version and most_since >= wanted)
            ):
                return
            self._arrive()
            most_since = max(most_since, len(server.outstanding))
        assert server.version > version, f"after the {mishap} of ticket {ticket}, {PATIENCE} arrivals brought no merge."
        raise AssertionError(
            f"after the {mishap} of ticket {ticket} at most {most_since} tickets were in flight at once, {wanted} were "
            "possible: the strategy forgets to hand out a ticket in place of the lost one."
        )

    # ---- one step ------------------------------------------------------------------------------------------------

    def _befall(self, weather: Weather) -> None:
        server, chance = self._server, self._chance
        here, away = sorted(server.clients), [c for c in range(len(self._examples)) if c not in server.clients]
        if not away and chance.unit() < weather.exodus:
            self._fleeing = True
        if not here or self._fleeing:
            self._flee_or_return(here, away)
            return
        lot = chance.unit()
        if away and lot < weather.join:
            self._join(away[chance.below(len(away))])
        elif weather.join <= lot < weather.join + weather.leave:
            client = here[chance.below(len(here))]
            self._tell(f"client {client} leaves", lambda: server.leave(client))
        elif server.outstanding:
            self._finish_one(weather)

    def _flee_or_return(self, here: list[int], away: list[int]) -> None:
        if here:
            self._tell(f"client {here[0]} leaves", lambda: self._server.leave(here[0]))
        else:
            self._fleeing = False
            self._join(away[self._chance.below(len(away))])

    def _finish_one(self, weather: Weather) -> None:
        server, chance = self._server, self._chance
        ticket = self._any_ticket()
        doomed = weather.doomed and server.outstanding[ticket].client == 0
        if doomed or chance.unit() < weather.loss:
            self._tell(f"ticket {ticket} is lost", lambda: server.lose(ticket))
        else:
            self._arrive(ticket)

    def _join(self, client: int) -> None:
        self._tell(f"client {client} joins", lambda: self._server.join(client, self._examples[client]))

    def _any_ticket(self) -> int:
        tickets = list(self._server.outstanding)
        return tickets[self._chance.below(len(tickets))]

    def _arrive(self, ticket: int | None = None) -> None:
        """A report: of any age, after any time, with durations of nothing, of seconds and of years."""
        ticket = self._any_ticket() if ticket is None else ticket
        client = self._server.outstanding[ticket].client
        duration = (0.0, self._chance.unit(), 1e9)[self._chance.below(3)]
        self._now += self._chance.below(2)
        self._arrivals += 1
        self._arrival_of[ticket] = self._arrivals
        report = Report(ticket, client, self._now, duration, self._examples[client])
        self._tell(f"ticket {ticket} is reported by client {client}", lambda: self._server.receive(report))

    # ---- what must hold after every step -------------------------------------------------------------------------

    def _tell(self, what: str, deliver: Callable[[], list[Output]]) -> None:
        with _blamed(f"step {len(self._story)}, {what}"):
            self._story.append((what, deliver()))
        server = self._server
        if server.stopped is not None:
            return
        assert server.outstanding or not len(server.clients), (
            f"step {len(self._story) - 1}, {what}: nothing is in flight and {len(server.clients)} clients are idle, "
            "so nothing will ever happen again. Hand out tickets whenever work is lost, or a client joins."
        )
        for ticket in server.waiting:
            age = self._arrivals - self._arrival_of[ticket]
            assert age <= PATIENCE, f"ticket {ticket} is neither merged nor dropped {age} arrivals after its own."
            break

    def _resume_from_snapshot(self) -> None:
        snapshot = self._server.snapshot()
        with _blamed("the snapshot cannot be written as JSON and read back; keep plain values in the state"):
            restored = Server(self._strategy, self._examples, seed=self._key)
            restored.restore(json.loads(json.dumps(snapshot)))
        assert restored.snapshot() == snapshot, "the state is not the same after a snapshot went through JSON."
        self._server = restored


# ---- problems --------------------------------------------------------------------------------------------------------


def check_problem(problem: Problem, seed: int = 0) -> None:
    """Refuse a problem whose numbers do not fit together or whose training depends on anything but its arguments.

    Training must be repeatable, leave the params it was given alone, and be the same to the last bit alone, in a batch
    and on several threads; the objective must be the mean of the clients' losses, and the gradient the slope of a
    client's loss wherever that loss is smooth.
    """
    _check_shapes(problem, seed)
    draws = np.random.Generator(np.random.Philox(key=purpose_key(seed, "check_problem")))
    points = [draws.normal(0.0, 0.3, problem.num_params).astype(problem.dtype) for _ in range(4)]
    _check_training(problem, points, seed)
    for point in points:
        _check_losses(problem, point)
    for point in points:
        for client in {0, problem.num_clients - 1}:
            _check_gradient(problem, point, client, draws.normal(0.0, 1.0, problem.num_params))


def _check_shapes(problem: Problem, seed: int) -> None:
    counts = problem.num_examples
    assert problem.num_clients >= 1, f"there are {problem.num_clients} clients; a problem needs at least one."
    assert counts.shape == (problem.num_clients,), f"num_examples has shape {counts.shape}, one a client is needed."
    assert np.issubdtype(counts.dtype, np.integer), f"num_examples holds {counts.dtype}; it must hold whole numbers."
    assert counts.min() >= 1, f"client {int(counts.argmin())} has {counts.min()} examples; each needs at least one."
    assert problem.dtype in (np.float32, np.float64), f"dtype is {problem.dtype}; it must be float32 or float64."
    for client in (None, 0):
        first = problem.init(seed, client=client)
        _expect_params(problem, first, f"init(client={client})")
        assert np.array_equal(first, problem.init(seed, client=client)), "init gives different params for one seed."
    assert problem.fingerprint() == problem.fingerprint(), "fingerprint is not repeatable."


def _expect_params(problem: Problem, params: np.ndarray, what: str) -> None:
    shape, dtype = (problem.num_params,), problem.dtype
    assert params.shape == shape, f"{what} has shape {params.shape}; num_params says {shape}."
    assert params.dtype == dtype, f"{what} holds {params.dtype}; dtype says {dtype}."
    assert np.isfinite(params).all(), f"{what} is not finite."


def _check_training(problem: Problem, points: list[np.ndarray], seed: int) -> None:
    works = [Work(epochs=1 + i % 2, batch_size=4 + i, learning_rate=1e-3, proximal=0.1 * i) for i in range(len(points))]
    clients = [i % problem.num_clients for i in range(len(points))]
    keys = [draw_key(purpose_key(seed, "train"), client, ticket) for ticket, client in enumerate(clients)]
    alone = []
    for start, client, work, key in zip(points, clients, works, keys, strict=True):
        before = start.copy()
        trained = problem.local_train(start, client, work, key)
        assert np.array_equal(start, before), "local_train changed the params it was given; it must copy them."
        _expect_params(problem, trained, "what local_train returns")
        again = problem.local_train(start, client, work, key)
        assert np.array_equal(trained, again), "local_train is not repeatable: draw from `key` and from nothing else."
        alone.append(trained)
    for threads in (1, 2):
        together = problem.local_train_many(Jobs(np.array(points), clients, works, keys), threads)
        same = np.array_equal(np.array(alone), together)
        assert same, f"local_train_many with {threads} threads differs from local_train one by one."


def _check_losses(problem: Problem, point: np.ndarray) -> None:
    losses = problem.client_losses(point)
    assert losses.shape == (problem.num_clients,), f"client_losses has shape {losses.shape}; one a client is needed."
    assert np.array_equal(losses, problem.client_losses(point, threads=2)), "client_losses depends on the threads."
    _expect_close(problem.client_loss(point, 0), float(losses[0]), "client_loss of client 0 and client_losses[0]")
    measured = problem.evaluate(point)
    missing = {"objective", "pooled_loss"} - measured.keys()
    assert not missing, f"evaluate leaves out {sorted(missing)}."
    _expect_close(measured["objective"], float(losses.mean()), "the objective and the mean of client_losses")


def _expect_close(one: float, other: float, what: str) -> None:
    assert abs(one - other) <= 1e-9 * max(1.0, abs(one)), f"{what} differ: {one!r} and {other!r}."


def _check_gradient(problem: Problem, point: np.ndarray, client: int, direction: np.ndarray) -> None:
    """Compare with the slope along a direction, if two step widths agree on it: else the loss has a kink there."""
    width = 1e-2 if problem.dtype == np.float32 else 1e-5
    along = direction / np.linalg.norm(direction)

    def slope(step: float) -> float:
        ahead, behind = (point + sign * step * along for sign in (1.0, -1.0))
        return (problem.client_loss(ahead, client) - problem.client_loss(behind, client)) / (2.0 * step)

    wide, narrow = slope(width), slope(width / 2)
    gradient = problem.gradient(point, client)
    assert gradient.shape == point.shape, f"gradient has shape {gradient.shape}, the params {point.shape}."
    tolerance = (1e-2 if problem.dtype == np.float32 else 1e-5) * max(1.0, float(np.linalg.norm(gradient)))
    if abs(wide - narrow) > tolerance / 4:
        return
    claimed = float(gradient @ along)
    assert abs(claimed - narrow) <= tolerance, (
        f"the gradient of client {client} says the loss changes by {claimed:.6g} per step, the loss itself says "
        f"{narrow:.6g}."
    )


# ---- delays ----------------------------------------------------------------------------------------------------------


class BindableDelays(Protocol):
    """Delays as a user describes them: `Delays`, `FunctionDelays`, or one's own."""

    def bind(self, num_clients: int, seed: int) -> DelayModel: ...


def check_delay(delays: BindableDelays, num_clients: int = 5, seed: int = 0) -> None:
    """Refuse delays that depend on the order of the questions, or that are not seconds.

    The same (client, ticket) must take the same in any order of asking and in a model bound anew; every part must be
    finite and not negative; work must not be done before it can be, nor earlier when it begins later or is more.
    """
    model, anew = delays.bind(num_clients, seed), delays.bind(num_clients, seed)
    asked = [(client, ticket) for ticket in range(20) for client in range(num_clients)]
    answers = {pair: _timing(model, *pair) for pair in asked}
    chance = Stream(purpose_key(seed, "check_delay"))
    order = list(range(len(asked)))
    chance.shuffle(order)
    for place in order:
        for other in (model, anew):
            again = _timing(other, *asked[place])
            assert again == answers[asked[place]], (
                f"client {asked[place][0]}, ticket {asked[place][1]} took {answers[asked[place]]}, then {again}; "
                "an answer must depend on its arguments alone."
            )
    for (client, ticket), timing in answers.items():
        if timing.lost:
            _expect_seconds(model.lost_after(client, ticket, timing), f"lost_after of client {client}")
    for client in range(num_clients):
        _expect_seconds(model.watts(client), f"watts of client {client}")
        _check_finish(model, client, chance)


def _timing(model: DelayModel, client: int, ticket: int) -> Timing:
    timing = model.timing(client, ticket, Work(), 10)
    with _blamed("timing"):
        check_timing(timing, client, ticket)
    return timing


def _expect_seconds(value: float, what: str) -> None:
    assert 0 <= value < inf, f"{what} is {value}; it must be finite and not negative."


def _check_finish(model: DelayModel, client: int, chance: Stream) -> None:
    starts = sorted([0.0, *(1e3 * chance.unit() for _ in range(10))])
    amounts = sorted([0.0, *(1e2 * chance.unit() for _ in range(5))])
    done = np.array([[model.finish_compute(client, start, amount) for amount in amounts] for start in starts])
    assert np.isfinite(done).all(), f"finish_compute of client {client} is not finite."
    slack = 1e-9 * (1.0 + float(done.max()))
    early = done < np.add.outer(starts, amounts) - slack
    assert not early.any(), f"finish_compute of client {client} ends before start + seconds."
    for axis, what in ((0, "begins later"), (1, "takes more work")):
        back = np.diff(done, axis=axis) < -slack
        assert not back.any(), f"finish_compute of client {client} ends earlier when it {what}."
