"""Whether a delay model answers with durations, the same for the same ticket."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Protocol

import numpy as np

from asyncfed.core.errors import DelayError
from asyncfed.core.random import Stream, purpose_key
from asyncfed.core.types import Work
from asyncfed.delays import DelayModel, LimitsBandwidth, Timing, check_timing


class BindableDelays(Protocol):
    """Delays as a user describes them: `Delays`, `FunctionDelays`, or one's own."""

    def bind(self, num_clients: int, seed: int) -> DelayModel: ...


def check_delay(delays: BindableDelays, num_clients: int = 5, seed: int = 0) -> None:
    """Refuse delays that depend on the order of the questions, or that are not seconds.

    The same (client, ticket) must take the same in any order of asking and in a model bound anew; every part must be
    finite and not negative; work must not be done before it can be, nor earlier when it begins later or is more. Of a
    model that is `LimitsBandwidth`, more bytes must not take fewer seconds; where it limits nothing, bytes take none.

    Args:
        delays: the description, with a `bind(num_clients, seed)`.
        num_clients: how many clients it is bound to, 1 or more.
        seed: of the check's own draws.

    Raises:
        AssertionError: it says what is wrong.
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
    if isinstance(model, LimitsBandwidth):
        assert isinstance(anew, LimitsBandwidth), "the model bound anew has no transfer_seconds; the first one has."
        _check_transfer(model, anew, num_clients)
    for client in range(num_clients):
        _expect_seconds(model.watts(client), f"watts of client {client}")
        _check_finish(model, client, chance)


def _timing(model: DelayModel, client: int, ticket: int) -> Timing:
    timing = model.timing(client, ticket, Work(), 10)
    try:
        check_timing(timing, client, ticket)
    except DelayError as error:
        raise AssertionError(f"timing: {type(error).__name__}: {error}") from error
    return timing


def _expect_seconds(value: float, what: str) -> None:
    assert 0 <= value < inf, f"{what} is {value}; it must be finite and not negative."


def _check_transfer(model: LimitsBandwidth, anew: LimitsBandwidth, num_clients: int) -> None:
    amounts = (0, 1, 1_000, 10**6, 10**9)
    asked = [(client, down, up) for client in range(num_clients) for down in amounts for up in amounts]
    answers = {each: model.transfer_seconds(*each) for each in asked}
    for each in reversed(asked):
        for other in (model, anew):
            again = other.transfer_seconds(*each)
            assert again == answers[each], (
                f"transfer_seconds{each} was {answers[each]}, then {again}; "
                "an answer must depend on its arguments alone."
            )
    for (client, down, up), seconds in answers.items():
        for part in seconds:
            _expect_seconds(part, f"transfer_seconds of client {client}, {down} bytes down and {up} up,")
        assert model.limits_bandwidth or seconds == (0.0, 0.0), (
            f"limits_bandwidth is False, but client {client} needs {seconds} s for {down} bytes down and {up} up; "
            "without a limit they must take 0 s."
        )
    for client in range(num_clients):
        for less, more in pairwise(amounts):
            slow, slower = answers[client, less, less], answers[client, more, more]
            assert all(b >= a for a, b in zip(slow, slower, strict=True)), (
                f"transfer_seconds of client {client} are {slow} for {less} bytes and {slower} for {more}; more bytes "
                "must not take less time."
            )


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
