"""Whether a server rule can be simulated, deployed, replayed and resumed."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from asyncfed.core.errors import ConfigError
from asyncfed.core.random import Stream, draw_key, purpose_key
from asyncfed.core.types import Merge, Payload, Work
from asyncfed.problems.client_measurements import MEASUREMENTS
from asyncfed.rules import Arrival, RuleRun, ServerRule
from asyncfed.testing.array_check import (
    Arrays,
    bits_of,
    copy_arrays,
    expect_arrays,
    expect_vector,
    left_alone,
    through_a_file,
)
from asyncfed.testing.value_check import blame, check_part

MERGES = 8
"""So many merges are made in each setting."""


class Form(NamedTuple):
    """How a strategy merges: `size` updates at once, of which the changes, or the models, are added up."""

    name: str
    of: Payload
    keep: float
    size: int

    def weight(self, staleness: int) -> float:
        """What an update counts: a discounted share of a sum of changes, or an equal one of a mean."""
        if self.of == "delta":
            return 1.0 / (self.size * sqrt(1 + staleness))
        return (1.0 - self.keep) / self.size


def check_rule(
    rule: ServerRule,
    work: Work | None = None,
    num_clients: int = 5,
    num_params: int = 6,
    merge_size: int = 3,
    seed: int = 0,
) -> None:
    """Drive a rule through random merges and refuse it unless it can be simulated, deployed, replayed and resumed.

    It must be a frozen, registered value; leave the model, the arrivals and what it once answered alone; make the same
    of the same, to the last bit, also from a memory that went through a checkpoint; answer with finite models of the
    shape and type that it was given, single or double precision; send nothing but vectors of known names and of the
    model's shape and type; and find nothing but finite numbers. Merges are of one update and of `merge_size`, of
    changes, models and mixtures; a rule may refuse some of them with ConfigError, but not all.

    Args:
        rule: what is checked.
        work: what clients are asked to do; None for a `Work()`. Losses that it asks for are drawn from 0 to 1.
        num_clients: how many there are, 1 or more.
        num_params: the size of the model, 1 or more.
        merge_size: how many updates the larger merges have, 1 or more.
        seed: of the arrivals.

    Raises:
        AssertionError: it says what is wrong and when it happened.
    """
    work = Work() if work is None else work
    copy = check_part(rule, "rule", ServerRule)
    assert rule.theorem is None or type(rule.theorem) is str, f"theorem is {rule.theorem!r}; it is a name, or None."
    assert type(rule.draws_noise) is bool, f"draws_noise is {rule.draws_noise!r}; it is True or False."
    with blame("check refuses the work that the rule is tested with; pass another as `work`"):
        rule.check(work)
    sizes = sorted({1, merge_size})
    forms = [form for size in sizes for form in _forms(size)]
    refusals = []
    for number, (dtype, form) in enumerate((dtype, form) for dtype in (np.float64, np.float32) for form in forms):
        model = _draw(Stream(draw_key(seed, number, 0)), num_params, np.dtype(dtype))
        key = draw_key(purpose_key(seed, "check_rule"), number, 0)
        try:
            first = _Drive(rule, work, num_clients, model, form, key).log
        except ConfigError as refusal:
            refusals.append(refusal)
            continue
        when = f"{form.name}, {np.dtype(dtype)}"
        _expect_same(first, _Drive(rule, work, num_clients, model, form, key).log, f"{when}: run twice")
        resumed = _Drive(copy, work, num_clients, model, form, key, resume=True).log
        _expect_same(first, resumed, f"{when}: resumed from checkpoints, with a pickled copy of the rule")
    assert len(refusals) < 2 * len(forms), f"the rule refuses every merge it is tested with: {refusals[0]}"
    assert rule == copy, "the rule changed while it was driven; what it remembers belongs into its memory."


def _forms(size: int) -> list[Form]:
    many = "one update" if size == 1 else f"{size} updates"
    return [
        Form(f"changes of {many} added", "delta", 1.0, size),
        Form(f"models of {many} in place of the model", "model", 0.0, size),
        Form(f"models of {many} mixed with the model", "model", 0.5, size),
    ]


def _expect_same(one: list[Any], other: list[Any], when: str) -> None:
    for number, (expected, got) in enumerate(zip(one, other, strict=True)):
        assert expected == got, f"{when}: merge {number} differs in {_first_difference(expected, got)}."


def _first_difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    return next(name for name in one if one[name] != other[name])


def _draw(chance: Stream, num_params: int, dtype: np.dtype[Any]) -> np.ndarray:
    return np.array([chance.unit() - 0.5 for _ in range(num_params)], dtype)


class _Ticket(NamedTuple):
    client: int
    version: int
    start: np.ndarray
    sent_bits: Any


class _Drive:
    """One run of a rule; all choices come from `key`. `log` says what came of every merge."""

    def __init__(
        self,
        rule: ServerRule,
        work: Work,
        num_clients: int,
        params: np.ndarray,
        form: Form,
        key: int,
        resume: bool = False,
    ) -> None:
        self._rule, self._work, self._num_clients, self._form = rule, work, num_clients, form
        self._key, self._chance = key, Stream(key)
        self._params, self._version, self._next_ticket = params, 0, 0
        with left_alone({"the first model": params}, "init"):
            self._run = RuleRun(rule, params, num_clients)
        expect_arrays(self._run.memory, "the memory that init gives")
        self._out: dict[int, _Ticket] = {}
        self._models = {"model 0": params}
        self.log: list[dict[str, Any]] = []
        bits_of_models = bits_of(self._models)
        for number in range(MERGES):
            if resume:
                self._resume()
            with blame(f"{form.name}, merge {number}", allowed=(ConfigError,)):
                self.log.append(self._merge())
            self._models[f"model {number + 1}"] = self._params
            now = bits_of(self._models)
            for name, bits in bits_of_models.items():
                assert now[name] == bits, f"merge {number} changed {name}, which clients may still start from."
            bits_of_models = now

    def _resume(self) -> None:
        stored = through_a_file(copy_arrays(self._run.dump()))
        self._run = RuleRun(self._rule, self._params, self._num_clients)
        self._run.load(stored)

    def _merge(self) -> dict[str, Any]:
        """Dispatch tickets, choose some that come back, merge them, and check what the rule makes of it."""
        sent = [self._dispatch() for _ in range(self._form.size + 2 - len(self._out))]
        tickets = sorted(self._out)
        self._chance.shuffle(tickets)
        tickets = sorted(tickets[: self._form.size])
        arrivals = [self._arrive(ticket) for ticket in tickets]
        merge = Merge(
            tuple(tickets), tuple(a.weight for a in arrivals), self._form.keep, self._form.of, ends_round=True
        )
        key = draw_key(self._key, 0, self._version)
        memory = copy_arrays(self._run.memory)
        given = {"the model": self._params}
        for arrival in arrivals:
            given |= {
                f"ticket {arrival.ticket}'s start": arrival.start,
                f"ticket {arrival.ticket}'s model": arrival.model,
            }
            given |= {f"what ticket {arrival.ticket} was sent, {name}": array for name, array in arrival.sent.items()}
        with left_alone(given, "step"):
            once, after, found = self._rule.step(memory, self._params, arrivals, merge, key)
            params, info = self._run.step(self._params, arrivals, merge, key)
        expect_vector(params, self._params.shape, self._params.dtype, "the model that step gives")
        expect_arrays(self._run.memory, "the memory that step gives")
        _expect_numbers(info, "info")
        assert once.tobytes() == params.tobytes(), "step gives another model from a copy of the same memory."
        assert bits_of(after) == bits_of(self._run.memory), "step leaves another memory from a copy of the same one."
        assert found == info, f"step finds {found}, then {info}, from a copy of the same memory."
        self._params, self._version = params, self._version + 1
        for ticket in tickets:
            self._run.forget(ticket)
            del self._out[ticket]
        measured = [dict(arrival.metrics or {}) for arrival in arrivals]
        memory_bits = bits_of(self._run.memory)
        return {"model": params.tobytes(), "info": info, "sent": sent, "measured": measured, "memory": memory_bits}

    def _dispatch(self) -> Any:
        ticket, client = self._next_ticket, self._chance.below(self._num_clients)
        self._next_ticket += 1
        sent = self._run.send(ticket, client)
        expect_arrays(sent, "what is sent")
        unknown = sent.keys() - {"correction"}
        assert not unknown, f"send gives {sorted(unknown)}, which clients do not know; only `correction` has a meaning."
        for name, array in sent.items():
            expect_vector(array, self._params.shape, self._params.dtype, f"the {name} that send gives")
        self._out[ticket] = _Ticket(client, self._version, self._params, bits_of(sent))
        return bits_of(sent)

    def _arrive(self, number: int) -> Arrival:
        ticket, sent = self._out[number], self._run.sent_with(number)
        assert bits_of(sent) == ticket.sent_bits, (
            f"what ticket {number} was sent has changed since; let send answer with copies of what is in the memory."
        )
        model = ticket.start + _draw(Stream(draw_key(self._key, 1, number)), self._params.size, self._params.dtype)
        staleness, examples = self._version - ticket.version, 20 * ticket.client + 7
        weight, steps = self._form.weight(staleness), self._work.count_steps(examples)
        asked = Stream(draw_key(self._key, 3, number))
        metrics = {name: asked.unit() for name in MEASUREMENTS if getattr(self._work, name)}
        arrival = Arrival(
            number, ticket.client, 0.0, staleness, self._work, steps, examples, ticket.start, model, sent, metrics
        )
        given: Arrays = {"the model": self._params, "the start": ticket.start, "the trained model": model}
        with left_alone({**given, **sent}, "measure"):
            measured = self._run.measure(self._params, arrival, self._probe)
        _expect_numbers(measured, "what is measured")
        return arrival._replace(weight=weight, metrics={**metrics, **measured})

    def _probe(self, params: np.ndarray, client: int, work: Work, number: int) -> np.ndarray:
        """What training a client that the server holds would end with."""
        trained: np.ndarray = params + _draw(Stream(draw_key(self._key, 2 + client, number)), params.size, params.dtype)
        return trained


def _expect_numbers(numbers: Any, what: str) -> None:
    assert type(numbers) is dict, f"{what} is a {type(numbers).__name__}; it must be a dict of numbers by name."
    for name, value in numbers.items():
        assert type(name) is str, f"{what} has the name {name!r}; names are strings."
        plain = type(value) in (int, float) and isfinite(value)
        assert plain, f"{what} says {name} = {value!r} ({type(value).__name__}); it must be a plain finite number."
